import type { Campaign } from "./core.js";

/** What reporting to all these campaigns together reveals: to be shown before a user agrees. */
export declare function explainAll(campaigns: readonly Campaign[], options?: { limit?: number | null }): string;
