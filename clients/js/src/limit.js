/**
 * Limits: what they have to cover, at enrolment and never after it.
 *
 * A client that falls silent at its limit would show by the silence that its user moved. So a limit is
 * compared with the most that can ever be spent, whatever the values. Amounts that are not known are NaN.
 */

import { tried } from "./check.js";
import { BudgetError, must } from "./errors.js";
import { amountText, sum } from "./number.js";
import { Protocol } from "./protocol.js";

/** Whether a limit covers an amount; null is no limit. The tolerance only absorbs rounding. */
export const covers = (limit, amount) => limit === null || amount <= limit * (1 + 1e-12);

/** What a new client is to be able to spend: its cap, or one report of a one-round rule. */
export const claimOf = ({ longitudinal, cap, loss }) => (longitudinal ? cap : loss);

/** What one report was asked to lose at most. */
export const first = ({ spec, loss }) => spec.eps_1 ?? loss;

export const checkAmount = (limit) => must(limit === null || (typeof limit === "number" && limit > 0), "limit must be a number above 0");

/** Refuse a limit that does not cover what was committed before and what clients claim; says what would fit. */
export function checkLimit(limit, before, claims, protocol) {
  checkAmount(limit);
  const least = sum(claims, before);
  if (covers(limit, least)) return;
  const { spec, loss } = protocol ?? {};
  const joint = tried(() => new Protocol({ ...spec, memo: "joint" }));
  const fit = (name, cap) => (cap <= limit - before ? `, ${name} (cap ${amountText(cap)})` : "");
  must(
    false,
    `limit must cover ${amountText(least)}, all that can be spent, got ${amountText(limit)}; use a larger one` +
      fit("BiLOLOHA", 2 * loss) + fit("one joint memo", joint?.cap),
  );
}

/** A limit as it is stored: one that never binds is none. */
export const bound = (limit) => (limit === Infinity ? null : limit);

/** Refuse a report or a reset that the limit does not cover. */
export function afford(limit, amount) {
  if (covers(limit, amount)) return;
  throw new BudgetError(`limit must cover ${amount ? amountText(amount) : "all that can be spent"}, got ${amountText(limit)}; ask the user anew`);
}

/** What was committed before a state that does not say it, as those of release 0.2.0. */
export const committedBefore = (limit, isUnknown, spent) => (limit !== null && isUnknown ? NaN : spent);
