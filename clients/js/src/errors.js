/** What goes wrong, by kind. No message ever holds a user's value, key or memo. */

export class LolohaError extends Error {}

/** Each kind states its name: minifiers rename classes. */
export const [
  /** A parameter of a protocol, campaign or call is missing, unknown or out of range. */
  ParameterError,
  /** A campaign document cannot be read, or is not the one that was agreed on. */
  CampaignError,
  /** A value is outside the campaign's domain; it is not shown. */
  DomainError,
  /** One more answer would take the loss above the user's limit. */
  BudgetError,
  /** A state is damaged, foreign, in use, or not there yet. */
  StateError,
  /** The collector gave no answer that settles anything. */
  Unreachable,
] = ["ParameterError", "CampaignError", "DomainError", "BudgetError", "StateError", "Unreachable"].map(
  (name) =>
    class extends LolohaError {
      name = name;
    },
);

/** Throws an error unless what must be so is so. */
export function must(holds, message, Kind = ParameterError) {
  if (!holds) throw new Kind(message);
}

/** Where nobody agreed, or to another campaign, or to one that differs in a byte. */
export const ANOTHER = "campaign must be the one agreed to; withdraw, ask the user anew";
/** Of a state. */
export const UNKNOWN = "state must be known; use a newer release";

/** What `act` reads of a state. Why one is damaged is not told: it could quote the state. */
export async function sound(act) {
  try {
    return await act();
  } catch (error) {
    throw error instanceof StateError ? error : new StateError("state must be undamaged; withdraw");
  }
}
