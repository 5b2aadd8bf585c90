export * from "./index.js";
import type { Storage } from "./index.js";

/** Keeps a state in a private file, written whole or not at all, one writer at a time. */
export declare function fileStorage(file: string): Storage;
