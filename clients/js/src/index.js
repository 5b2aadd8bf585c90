/** A device of loloha: reports that are private before they leave it. */

export { Campaign } from "./campaign.js";
export { Client, KEPT_ROUNDS } from "./client.js";
export * from "./errors.js";
export { encode } from "./message.js";
export { PROTOCOLS, Protocol } from "./protocol.js";
export { SecureRng } from "./rng.js";
export { Sender } from "./sender.js";
export { indexedDbStorage, memoryStorage } from "./storage.js";
