/** What a sender keeps: one consent, to one campaign or several under one limit. Python reads it too. */

import { Campaign } from "./campaign.js";
import { isAmount, isInteger, tried } from "./check.js";
import { Client } from "./client.js";
import { keyText } from "./encoding.js";
import { StateError, UNKNOWN, must, sound } from "./errors.js";
import { canonical, parse } from "./json.js";
import { committedBefore } from "./limit.js";
import { isReportOf } from "./message.js";
import { sha256, sum } from "./number.js";
import { isVisible } from "./post.js";
import { areRounds, including } from "./rounds.js";

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
 * @property {number} committed what a limit has to cover of these, whatever the values were; NaN if
 *   it is not known
 * @property {object} answered the rounds of these, and of resets, by fingerprint
 */

/** What a storage with nothing in it stands for. */
const nothing = () => ({ enrolments: [], limit: null, spent: 0, committed: 0, answered: {} });

/**
 * What reads states: those that `textOf` wrote, and a storage with nothing in it.
 *
 * It checks each queued message once.
 */
export function reader() {
  /** Messages that are known to be their client's, with its secret and the round. */
  let checked = new Map();

  const stateOf = async (text) => {
    if (text === null) return nothing();
    const plain = parse(text);
    const { type, version, enrolments = [], answered_before = {} } = plain;
    const isAgreement = type === TYPE && version === VERSION;
    const isLedger = type === LEDGER && version === 1;
    must(isAgreement || isLedger, UNKNOWN, StateError);
    const now = new Map();
    const read = await Promise.all(enrolments.map((one) => enrolmentOf(one, now)));
    const { limit = null, spent, committed = spent, answered } = isLedger
      ? plain
      : {
          ...plain,
          spent: plain.spent_before,
          committed: plain.committed_before ?? implied(plain.limit, plain.spent_before, read),
          answered: answered_before,
        };
    must(
      isAgreement === read.length > 0 &&
        haveNames(read) &&
        [undefined, await checksumOf(plain)].includes(plain.checksum) &&
        isAmount(spent) &&
        isAmount(committed || 0) &&
        (limit === null || (isAmount(limit) && limit > 0)) &&
        Object.values(answered).every(areRounds),
    );
    checked = now;
    return { enrolments: read, limit, spent, committed, answered };
  };

  async function enrolmentOf({ url, token, ticket, queue, ...plain }, now) {
    const campaign = await Campaign.restore(plain.campaign, fingerprintOf(url));
    const client = await Client.restore(plain.client, campaign);
    must((token === null || isVisible(token)) && (ticket === null || isVisible(ticket, LONGEST_TICKET)));
    const { key: ownKey, secret } = plain.client;
    for (const [round, text] of queue) {
      const whose = secret + round;
      const isKnown = checked.get(text) === whose;
      must(isInteger(round) && client.hasAnswered(round));
      must(isKnown || (await isReportOf({ campaign, client, ownKey, ticket }, round, text)));
      now.set(text, whose);
    }
    return { url, token, ticket, campaign, client, queue };
  }

  return (text) => sound(() => stateOf(text));
}

/** What an agreement that does not say it, as those of release 0.2.0, committed before. */
const implied = (limit, spent, enrolments) =>
  committedBefore(limit, sum(enrolments.map(({ client }) => client.spentBefore), spent) > 0, spent);

const checksumOf = ({ checksum, ...plain }) => sha256(canonical(plain));

/** As text, secrets included; null where there is nothing to keep. */
export async function textOf({ enrolments, limit, spent, committed, answered }) {
  // What a state without it means is left out.
  const said = (name, without) => !Object.is(committed, without) && { [name]: committed };
  const ledger = { type: LEDGER, version: 1, spent, answered, ...said("committed", spent) };
  if (!enrolments.length) return spent || committed || Object.keys(answered).length ? canonical(ledger) : null;
  const plain = {
    type: TYPE,
    version: VERSION,
    limit,
    spent_before: spent,
    ...said("committed_before", implied(limit, spent, enrolments)),
    enrolments: await Promise.all(enrolments.map(plainOf)),
    ...(Object.keys(answered).length && { answered_before: answered }),
  };
  return canonical({ ...plain, checksum: await checksumOf(plain) });
}

const plainOf = async (enrolment) => ({
  ...enrolment,
  campaign: enrolment.campaign.plain,
  client: await enrolment.client.plain(),
});

/** What is left once consent ends: what was spent, committed and answered; no key, no memo, no report. */
export function ledgerAfter({ enrolments, spent, committed, answered }) {
  const ledger = { ...nothing(), spent, committed: committed || spent, answered: { ...answered } };
  for (const { campaign: { fingerprint }, client } of enrolments) {
    const { account } = client;
    ledger.spent += account.spent;
    // One that never reported has told nothing, and its key is gone.
    ledger.committed += client.sentRounds.length ? account.committed : client.committedBefore;
    ledger.answered[fingerprint] = including(ledger.answered[fingerprint] ?? [], account.answered);
  }
  return ledger;
}

/** What can still be read, in a state that is damaged, of what was spent and answered before it. */
export function remainsOf(text) {
  const { spent_before, spent = spent_before, answered_before, answered = answered_before, ...plain } = Object(tried(parse, text));
  const { committed_before = spent, committed = committed_before } = plain;
  return {
    ...nothing(),
    ...(isAmount(spent) && { spent, committed: isAmount(committed) ? committed : spent }),
    ...(tried(() => Object.values(answered).every(areRounds)) && { answered }),
  };
}

/** Everything spent so far: the losses of all campaigns add up. */
export const lossOf = ({ enrolments, spent }) => sum(enrolments.map(({ client }) => client.loss), spent);

/** Everything committed so far, NaN if it is not known. */
export const committedOf = ({ enrolments, committed }) => sum(enrolments.map(({ client }) => client.committed), committed);

/** Whether each campaign has a name of its own. */
export const haveNames = (enrolments) =>
  new Set(enrolments.map(({ campaign }) => campaign.name)).size === enrolments.length;

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
