/** One report as JSON: within a campaign and a round, every message has the same length. */

import { keyText } from "./encoding.js";

/** The message of a report; `ticket` goes with a key that the collector has assigned. */
export function encode({ fingerprint, protocol }, { key, y }, { round, reporter, ticket }) {
  const { encoding } = protocol;
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
