/** What a user agrees to, in plain words; for one campaign or several. The same text as Python's. */

import { given, isCampaign } from "./check.js";
import { must } from "./errors.js";
import { checkAmount, claimOf, covers, first } from "./limit.js";
import { factor, general, sum } from "./number.js";

export { explainPreview } from "./words.js";

/**
 * What reporting to all these campaigns together reveals, to be shown before a user agrees.
 *
 * @param {import("./core.js").Campaign[]} campaigns at least one
 * @param {object} [options]
 * @param {number} [options.limit] the hard limit that is to be agreed on
 * @param {import("./core.js").Campaign[]} [options.after] those that the user reported to before, such as the one
 *   that they succeed
 * @returns {string} a statement a line
 */
export function explainAll(campaigns, options) {
  const { limit: asked, after = [] } = given("options", options);
  const limit = asked ?? Infinity;
  for (const list of [campaigns, after]) {
    must(Array.isArray(list) && list.every(isCampaign), "campaigns must be a list of them, from Campaign.read");
  }
  must(campaigns.length, "campaigns must hold at least one, got none");
  checkAmount(limit);
  const lines = [
    "Values stay on the device. It sends answers that are drawn at random: each could have been sent under any other value.",
    ...campaigns.map(one),
    ...(campaigns.length > 1 ? [together(campaigns)] : []),
    most(campaigns, limit),
    ...(after.length ? [both(after, campaigns)] : []),
    "Not covered by any of these numbers: when values change and when back, which shows in the " +
      "reports the more the longer they run; whether and when reports are sent, and from where.",
    "Nothing renews by itself: what was spent stays spent after a reset or a withdrawal.",
  ];
  return lines.map((line) => `- ${line}`).join("\n");
}

function one({ name, protocol, schedule }) {
  const sentence =
    `${name}: one of ${protocol.k} values, every ${span(schedule.seconds * schedule.every)}. One report, seen alone, ` +
    `shifts the odds between any two values by a factor of at most ${factor(first(protocol))}: of ` +
    `two that seemed equally likely one can then seem ${belief(first(protocol))}`;
  if (!protocol.longitudinal) return `${sentence}. Every further report shifts them by as much again.`;
  return `${sentence}; all reports of a value that never changes, for ever, by at most ${factor(protocol.loss)}: ${belief(protocol.loss)}.`;
}

/** The losses of several attributes of one person add up, however these depend on each other. */
function together(campaigns) {
  const protocols = campaigns.map(({ protocol }) => protocol);
  const sentence =
    `All ${protocols.length} together: their losses add up. The first report of each, all of ` +
    `them known: a factor of at most ${factor(sum(protocols.map(first)))}`;
  if (!protocols.every(({ longitudinal }) => longitudinal)) {
    return `${sentence}; later ones have no bound for ever, as not all of them are memoised.`;
  }
  return `${sentence}; all reports of values that never change: ${factor(sum(protocols.map(({ loss }) => loss)))}.`;
}

/** What campaigns cost together with those before them, of the same attribute or of others. */
function both(before, campaigns) {
  const protocols = [...before, ...campaigns].map(({ protocol }) => protocol);
  const text = `After ${before.map(({ name }) => name).join(", ")}: what was spent there stays spent, and these losses add to it.`;
  if (!protocols.every(({ longitudinal }) => longitudinal)) {
    return `${text} In all there is no bound for ever, as not all answers are memoised.`;
  }
  return (
    `${text} All reports to all of them of values that never change: a factor of at most ` +
    `${factor(sum(protocols.map(({ loss }) => loss)))}; at most ${general(sum(protocols.map(({ cap }) => cap)))} can be spent in all.`
  );
}

function most(campaigns, limit) {
  const protocols = campaigns.map(({ protocol }) => protocol);
  const cap = sum(protocols.map((protocol) => protocol.cap));
  const need = sum(protocols.map(claimOf));
  if (!covers(limit, need)) {
    return (
      `Budget: a limit of ${general(limit)} does not cover the ${general(need)} that can be spent: ` +
      "nothing is reported under it."
    );
  }
  if (Math.min(cap, limit) === Infinity) {
    return "Budget: without a limit there is no most that can be spent.";
  }
  const asked = limit < cap ? "the limit that is agreed on" : "the cap";
  return (
    `Budget: at most ${general(Math.min(cap, limit))} can be spent, ${asked}. It counts the answers that are drawn; ` +
    "it is not a bound on what a history of changing values shows."
  );
}

/** What one of two values can seem at most, that seemed equally likely, rounded up. */
function belief(eps) {
  const share = Math.ceil(1000 / (1 + Math.exp(-eps)));
  return share > 999 ? "almost certain" : `at most ${(share / 10).toFixed(1)} % likely`;
}

function span(seconds) {
  for (const [name, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (seconds % size === 0) return seconds === size ? name : `${seconds / size} ${name}s`;
  }
  return seconds === 1 ? "second" : `${seconds} seconds`;
}
