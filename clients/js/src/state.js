/** What a sender keeps: one consent, to one campaign or several under one limit. Python reads it too. */

import { Campaign } from "./campaign.js";
import { isAmount, isInteger, tried } from "./check.js";
import { Client } from "./client.js";
import { keyText } from "./encoding.js";
import { StateError, UNKNOWN, must, sound } from "./errors.js";
import { canonical, parse } from "./json.js";
import { isVisible } from "./post.js";
import { areRounds } from "./rounds.js";

const TYPE = "loloha-sender";
const VERSION = 2;
const LEDGER = "loloha-spent";
/** A ticket goes out with every report: it must not become a place for whatever a server likes. */
const LONGEST_TICKET = 100;
const ADDRESS = /^https?:\/\/[^@/]+(\/[^?#]*)?\/v1\/campaigns\/([0-9a-f]{64})$/;

/**
 * Everything that one storage holds: an agreement, or what outlives one.
 *
 * @typedef {object} State
 * @property {object[]} enrolments one for each campaign, none without consent: {url, token, ticket,
 *   campaign, client, queue}, of which the queue has [round, message], as it is or was sent, oldest first
 * @property {number | null} limit hard limit on what is spent
 * @property {number} spent under agreements before this one
 * @property {object} answered the rounds of these, by fingerprint
 */

/** The state that `textOf` wrote, or that of a storage with nothing in it. */
export const stateOf = (text) =>
  sound(async () => {
    if (text === null) return { enrolments: [], limit: null, spent: 0, answered: {} };
    const plain = parse(text);
    const { type, version, enrolments = [], answered_before = {} } = plain;
    const isAgreement = type === TYPE && version === VERSION;
    const isLedger = type === LEDGER && version === 1;
    must(isAgreement || isLedger, UNKNOWN, StateError);
    const { limit, spent, answered } = isLedger
      ? { ...plain, limit: null }
      : { ...plain, spent: plain.spent_before, answered: answered_before };
    must(
      isAgreement === enrolments.length > 0 &&
        isAmount(spent) &&
        (limit === null || isAmount(limit)) &&
        Object.values(answered).every(areRounds),
    );
    return { enrolments: await Promise.all(enrolments.map(enrolmentOf)), limit, spent, answered };
  });

async function enrolmentOf({ url, token, ticket, queue, ...plain }) {
  const campaign = await Campaign.restore(plain.campaign, fingerprintOf(url));
  const client = await Client.restore(plain.client, campaign);
  must((token === null || isVisible(token)) && (ticket === null || isVisible(ticket, LONGEST_TICKET)));
  for (const [round, text] of queue) {
    must(isInteger(round) && client.hasAnswered(round) && JSON.parse(text).round === round);
  }
  return { url, token, ticket, campaign, client, queue };
}

/** As text, secrets included; null where there is nothing to keep. */
export async function textOf({ enrolments, limit, spent, answered }) {
  if (!enrolments.length) return spent ? canonical({ type: LEDGER, version: 1, spent, answered }) : null;
  return canonical({
    type: TYPE,
    version: VERSION,
    limit,
    spent_before: spent,
    enrolments: await Promise.all(enrolments.map(plainOf)),
    ...(Object.keys(answered).length && { answered_before: answered }),
  });
}

const plainOf = async (enrolment) => ({
  ...enrolment,
  campaign: enrolment.campaign.plain,
  client: await enrolment.client.plain(),
});

export const sumOf = (enrolments, numberOf) =>
  enrolments.reduce((sum, { client }) => sum + numberOf(client), 0);

/** Everything spent so far: the losses of all campaigns add up. */
export const lossOf = ({ enrolments, spent }) => spent + sumOf(enrolments, ({ loss }) => loss);

/** The fingerprint that an address ends with. */
export function fingerprintOf(url) {
  const address = tried(() => ADDRESS.exec(new URL(url).href));
  must(address, "url must be https://HOST/v1/campaigns/FINGERPRINT");
  return address[2];
}

/** Key and ticket of what a collector answered, undefined if it holds neither. */
export const assigned = ({ protocol: { encoding } }, said) =>
  tried(() => {
    const { key: text, ticket } = said;
    const key = encoding.keyFrom(text);
    // Every digit is there, and no other.
    must(encoding.isKey(key) && keyText(encoding, key) === text && isVisible(ticket, LONGEST_TICKET));
    return { key, ticket };
  });
