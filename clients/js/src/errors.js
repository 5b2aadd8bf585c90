/** What goes wrong, by kind. No message ever holds a user's value, key or memo. */

export class LolohaError extends Error {}

// Minifiers rename classes, so that each states its name.
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
/** One more answer would take the loss above the user's limit. */
export const BudgetError = kind("BudgetError");
/** A state is damaged, foreign, in use, or not there yet. */
export const StateError = kind("StateError");
/** The collector gave no answer that settles anything. */
export const Unreachable = kind("Unreachable");

/** Of a state that no device can have written. The cause is not told: it could quote the state. */
export const DAMAGED = "state must be what was written; it is damaged";

/** Throws an error of a kind unless what must be so is so. */
export function must(holds, Kind, message) {
  if (!holds) throw new Kind(message);
}
