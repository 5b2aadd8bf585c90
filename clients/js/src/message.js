/** One report as JSON: within a campaign and a round, every message has the same length. */

import { keyText } from "./encoding.js";
import { canonical } from "./json.js";
import { unhex } from "./number.js";

/** The message of a report; `ticket` goes with a key that the collector has assigned. */
export function encode({ fingerprint, protocol: { encoding } }, { key, y }, { round, reporter, ticket }) {
  return messageOf(fingerprint, round, reporter, encoding.answerText(y), keyText(encoding, key), ticket);
}

const messageOf = (campaign, round, reporter, y, key, ticket) =>
  // What is undefined is left out.
  JSON.stringify({ version: 1, campaign, round, reporter, y, key: key || undefined, ticket: ticket ?? undefined });

/**
 * Whether a message is the report that a client made for a round, whatever the order of its members; `ownKey`
 * is the client's. Of a report that the client does not keep any more the answer is not known.
 */
export async function isReportOf({ campaign: { fingerprint, protocol }, client, ownKey, ticket }, round, text) {
  const { encoding, longitudinal } = protocol;
  const plain = JSON.parse(text);
  const sent = client.sentRounds.includes(round) && client.report(0, round);
  const y = sent ? encoding.answerText(sent.y) : plain.y;
  const key = longitudinal ? keyText(encoding, encoding.sent(ownKey)) : sent ? keyText(encoding, sent.key) : plain.key;
  const made = messageOf(fingerprint, round, await client.reporter(round), y, key, ticket);
  return [y, key || y].every(unhex) && canonical(plain) === canonical(JSON.parse(made));
}
