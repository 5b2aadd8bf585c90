/** The pure half of a device: no network, no storage. */

export { Campaign } from "./campaign.js";
export { Client, KEPT_ROUNDS } from "./client.js";
export {
  BudgetError,
  CampaignError,
  DomainError,
  LolohaError,
  ParameterError,
  StateError,
  Unreachable,
} from "./errors.js";
export { encode } from "./message.js";
export { PROTOCOLS, Protocol } from "./protocol.js";
export { SecureRng } from "./rng.js";
