/** A device of loloha: reports that are private before they leave it. */

export * from "./core.js";
export { Sender } from "./sender.js";
export { indexedDbStorage, memoryStorage } from "./storage.js";
