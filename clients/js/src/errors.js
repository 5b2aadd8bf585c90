/** What goes wrong, by kind. No message ever holds a user's value, key or memo. */

export class LolohaError extends Error {}

/** Each kind states its name: minifiers rename classes. */
const kind = (name) =>
  class extends LolohaError {
    name = name;
  };

/** A parameter of a protocol, campaign or call is missing, unknown or out of range. */
export const ParameterError = kind("ParameterError");
/** A campaign document cannot be read, or is not the one that was agreed on. */
export const CampaignError = kind("CampaignError");
/** A value is outside the campaign's domain; it is not shown. */
export const DomainError = kind("DomainError");
/** A report, or a reset, that the user's limit does not cover; never because of a value. */
export const BudgetError = kind("BudgetError");
/** A state is damaged, foreign, in use, or not there yet. */
export const StateError = kind("StateError");
/** The collector gave no answer that settles anything. */
export const Unreachable = kind("Unreachable");

/** Throws an error unless what must be so is so. */
export function must(holds, message, Kind = ParameterError) {
  if (!holds) throw new Kind(message);
}

/** Of a state. */
export const UNKNOWN = "state must be of a known type and version; use the release of loloha that wrote it";

const DAMAGED =
  "state must be what a client wrote, it is damaged; withdraw, and agree again only if the user does";

/** What `act` reads of a state. The cause of damage is dropped: it could quote the state. */
export async function sound(act) {
  try {
    return await act();
  } catch (error) {
    throw error instanceof StateError ? error : new StateError(DAMAGED);
  }
}
