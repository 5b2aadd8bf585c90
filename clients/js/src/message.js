/** One report as JSON: within a campaign and a round, every message has the same length. */

import { round as checkRound, tried } from "./check.js";
import { keyOf, keyText } from "./encoding.js";
import { canonical } from "./json.js";
import { must } from "./errors.js";

/** The message of a report; `ticket` goes with a key that the collector has assigned. */
export function encode(...report) {
  const message = tried(written, report);
  must(message, "report must be a client's, for a round of a campaign; see Client.report, Client.reporter");
  return message;
}

function written([{ fingerprint, protocol: { encoding } }, { key, y }, { round, reporter, ticket }]) {
  checkRound("round", round);
  must(typeof reporter === "string");
  return JSON.stringify({
    version: 1,
    campaign: fingerprint,
    round,
    reporter,
    y: encoding.answerText(y),
    // What is undefined is left out.
    key: keyText(encoding, key) || undefined,
    ticket: ticket ?? undefined,
  });
}

/**
 * Whether a message is the report that a client made for a round, whatever the order of its members; `ownKey`
 * is the client's. Of a report that the client does not keep any more the answer is not known.
 */
export async function isReportOf({ campaign, client, ticket }, ownKey, round, text) {
  const { encoding, longitudinal } = campaign.protocol;
  const plain = JSON.parse(text);
  const parsed = () => {
    const y = encoding.answerOf(plain.y);
    must(encoding.isAnswer(y));
    return { key: longitudinal ? encoding.sent(ownKey) : keyOf(encoding, plain.key), y: encoding.answerFrom(y) };
  };
  const report = client.sentRounds.includes(round) ? client.report(0, round) : parsed();
  const made = encode(campaign, report, { round, reporter: await client.reporter(round), ticket });
  // As many colons as members, none of which is there twice: a collector may read the other one.
  const sizeOf = (one) => one.split(":").length;
  return sizeOf(text) === sizeOf(made) && canonical(plain) === canonical(JSON.parse(made));
}
