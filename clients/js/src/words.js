/** What one report says, in plain words: the same text as Python's. */

import { tried } from "./check.js";
import { must } from "./errors.js";
import { first } from "./limit.js";
import { factor, unhex } from "./number.js";

/** Values that are named, and that are hashed to name those of one cell. */
const MOST_LISTED = 10;
const MOST_HASHED = 2 ** 16;
// The beginning of the year 9999.
const LAST_END = 253_370_764_800;
const KINDS = {
  queued: "this report waits; the next delivery sends these bytes.",
  answered: "this round was answered, and its report has left the queue. These were its bytes.",
  example: "an example. Nothing was drawn, stored or sent for this user.",
};
const REASONS = {
  "do-not-track": "DO_NOT_TRACK is set, so nothing was drawn or sent; what is stored stays. Unset it, or set it to 0, to report",
  paused: "The campaign is paused: nothing is drawn or sent for it.",
  ended: "The campaign has ended: nothing is drawn or sent for it.",
  expired: "The end date of the campaign leaves no report of this round.",
  "not-due": "This user does not report in this round, as each does in one of several only.",
  limit: "The limit that was agreed on leaves no report.",
  answered: "Nothing goes for this round: it was answered, and its report is not remembered.",
  "not-agreed": "The user has not agreed to this campaign.",
};

/**
 * The bytes, and what each part of them means, a statement a line.
 *
 * @param {import("./index.js").Preview} preview
 */
export function explainPreview(preview) {
  const text = tried(explained, preview);
  must(text, "preview must be what Sender.preview gives");
  return text;
}

function explained({ campaign, round, kind, message, url, reason }) {
  const { name, protocol } = campaign;
  const { k, longitudinal } = protocol;
  const plain = JSON.parse(message);
  const isExample = kind === "example";
  const [key, answer] = words(campaign, plain);
  const lasting = longitudinal
    ? "the same in every report of a user: who receives the reports can join them by it"
    : "drawn anew for each report";
  const lines = [
    reason && REASONS[reason],
    `${message.length} bytes, as in every report of this campaign and round, whatever its value.${url && ` They go to ${url}/reports.`}`,
    "campaign: the SHA-256 of the campaign's document.",
    `round: ${begin(campaign.schedule, round)}.`,
    "reporter: a pseudonym for this round alone: a report that arrives twice counts once, and rounds cannot be joined by it.",
    plain.key && `key: ${key}, ${lasting}.`,
    plain.ticket && `ticket: the collector's, with the key that it assigned; as lasting${isExample ? "; zeros stand for it here" : ""}.`,
    `y: ${answer}.`,
    `Seen alone, the report shifts the odds between any two values by a factor of at most ${factor(first(protocol))}.`,
    isExample &&
      `It is of a value taken from the ${k} at random, and of a client that was thrown away: a report of this user has its own reporter${plain.key ? ", key" : ""} and answer.`,
  ];
  const items = lines.filter(Boolean).map((line) => `- ${line}`);
  return [`${name}, round ${round}: ${KINDS[kind]}`, message, ...items].join("\n");
}

/** What the key is, and what the answer says. */
function words({ protocol, domain: { labelOf } }, plain) {
  const { spec, k, encoding } = protocol;
  const key = plain.key && encoding.keyFrom(plain.key);
  const y = Number(`0x${plain.y}`);
  const side = y ? "at least" : "below";
  const truth = ", the user's side of it or, at random, the other";
  if (spec.target === "mean") return ["", `${side} a threshold that stays on the device${truth}`];
  if (spec.target) return ["the user's threshold", `${side} ${JSON.stringify(labelOf(key))}${truth}`];
  const values = [...Array(k > MOST_HASHED ? 0 : k).keys()];
  if (spec.hash) {
    const inside = values.filter((v) => encoding.memoIndex(key, v) === y);
    const holds = values.length ? `, which holds ${inside.length} of ${k} values${listed(inside, labelOf)}` : "";
    return ["the seed of the user's hash", `cell ${y} of ${encoding.memoSymbols}${holds}; it is that of this user's value or, at random, another`];
  }
  if (typeof encoding.certain(0) === "number") {
    return ["", `the value ${JSON.stringify(labelOf(y))}, which is this user's own or, at random, another`];
  }
  const bytes = unhex(plain.y);
  const isSet = (i) => (bytes[i >> 3] >> (i & 7)) & 1;
  const flipped = "any of them may be flipped";
  if (spec.b) {
    const edge = (bucket) => Math.ceil((bucket * k) / spec.b);
    const bucketOf = (bucket) => {
      const [low, high] = [edge(bucket), edge(bucket + 1) - 1].map(labelOf);
      return low === high ? low : `${low} … ${high}`;
    };
    const buckets = key.filter((_, i) => isSet(i));
    return [`the user's ${key.length} buckets of ${spec.b}`, `a bit for each of these buckets, ${buckets.length} of them set${listed(buckets, bucketOf)}; ${flipped}`];
  }
  const all = [...Array(k).keys()].filter(isSet);
  return ["", `a bit for each of ${k} values, ${all.length} of them set${listed(all, labelOf)}; ${flipped}`];
}

/** A few labels in brackets, nothing for none. */
function listed(places, textOf) {
  const some = places.slice(0, MOST_LISTED).map((place) => JSON.stringify(textOf(place)));
  if (places.length > MOST_LISTED) some.push("...");
  return some.length ? ` (${some.join(", ")})` : "";
}

/** A round, and when it begins if a calendar has that day, up to the year 9999. */
function begin({ start, seconds }, round) {
  if (start + (round + 1) * seconds > LAST_END) return String(round);
  return `${round}, which begins at ${new Date(1000 * (start + round * seconds)).toJSON().replace(".000", "")}`;
}
