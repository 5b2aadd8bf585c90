/** One report byte for byte before it leaves, or an example of one: nothing is drawn of the user's own. */

import { Client } from "./client.js";
import { encode } from "./message.js";
import { SecureRng } from "./rng.js";

/**
 * The report of a round, as far as there is one.
 *
 * @param {object} enrolment empty where the user has not agreed
 * @param {object} campaign
 * @param {number} round
 * @param {string} why code for why nothing is drawn for this round, empty if something is
 */
export async function previewOf({ url = "", client, ticket, queue = [] }, campaign, round, why) {
  const [, waiting] = queue.find(([one]) => one === round) ?? [];
  const made = async (one, index, ticket) =>
    encode(campaign, one.report(index, round), { round, reporter: await one.reporter(round), ticket });
  const preview = { campaign, round, kind: "queued", message: waiting, url, reason: "" };
  if (waiting) return preview;
  // The report of a round that was answered is the same, whatever the value.
  if (client?.sentRounds.includes(round)) return { ...preview, kind: "answered", message: await made(client, 0, ticket) };
  const index = new SecureRng().below(campaign.protocol.k);
  // Zeros stand for a ticket: none is asked for.
  const message = await made(new Client(campaign.protocol), index, campaign.keys === "assigned" ? "0".repeat(32) : null);
  return { ...preview, kind: "example", message, reason: client?.hasAnswered(round) ? "answered" : why };
}
