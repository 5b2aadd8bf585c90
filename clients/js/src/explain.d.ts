import type { Campaign } from "./core.js";
import type { Preview } from "./index.js";

/** What reporting to all these campaigns together reveals: to be shown before a user agrees. */
export declare function explainAll(campaigns: readonly Campaign[], options?: { limit?: number | null; after?: readonly Campaign[] }): string;

/** The bytes of a report, and what each part of them means, a statement a line. */
export declare function explainPreview(preview: Preview): string;
