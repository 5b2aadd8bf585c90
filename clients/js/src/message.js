/** One report as JSON: within a campaign and a round, every message has the same length. */

const VERSION = 1;

/** The message of a report; `ticket` goes with a key that the collector has assigned. */
export function encode(campaign, report, { round, reporter, ticket = null }) {
  const { encoding } = campaign.protocol;
  const message = {
    version: VERSION,
    campaign: campaign.fingerprint,
    round,
    reporter,
    y: encoding.answerText(report.y),
  };
  if (encoding.keyBytes) message.key = encoding.keyText(report.key);
  if (ticket !== null) message.ticket = ticket;
  return JSON.stringify(message);
}
