/** What a sender keeps: one consent, to one campaign or several under one limit. Python reads it too. */

import { HALTED } from "./answer.js";
import { Campaign } from "./campaign.js";
import { isAmount, isInteger, tried } from "./check.js";
import { Client } from "./client.js";
import { keyText } from "./encoding.js";
import { StateError, UNKNOWN, must, sound } from "./errors.js";
import { canonical, parse, sealed, unsealed } from "./json.js";
import { committedBefore } from "./limit.js";
import { isReportOf } from "./message.js";
import { sum } from "./number.js";
import { isVisible } from "./post.js";
import { areRounds, including } from "./rounds.js";

const TYPE = "loloha-sender";
const VERSION = 2;
const LEDGER = "loloha-spent";
/** A ticket goes out with every report: it must not become a place for whatever a server likes. */
const isTicket = (ticket) => typeof ticket === "string" && /^[0-9a-f]{32}$/.test(ticket);
const ADDRESS = /^https?:\/\/[^@/]+(\/[^?#]*)?\/v1\/campaigns\/([0-9a-f]{64})$/;

/**
 * Everything that one storage holds: an agreement, or what outlives one.
 *
 * @typedef {object} State
 * @property {object[]} enrolments one for each campaign, none without consent: {url, token, ticket,
 *   campaign, client, queue, halted}, of which the queue has [round, message], as it is or was sent, oldest
 *   first; `halted` is there, "paused" or "ended", by the collector's answer
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
    // Releases up to 0.2.1 left it out of what outlives an agreement, 0.2.0 everywhere.
    const { type, version, enrolments = [], limit = null, ...rest } = plain.checksum ? await unsealed(plain) : plain;
    must(version === { [LEDGER]: 1, [TYPE]: VERSION }[type], UNKNOWN, StateError);
    const now = new Map();
    const read = await Promise.all(enrolments.map((one) => enrolmentOf(one, now)));
    const { spent, committed = implied(limit, spent, read), answered = {}, ...more } = ledgerOf(rest);
    must(
      (type === TYPE) === read.length > 0 &&
        haveNames(read) &&
        isAmount(spent) &&
        committed !== null &&
        isAmount(committed || 0) &&
        isAmount(limit ?? 1) &&
        limit !== 0 &&
        Object.values(answered).every(areRounds),
    );
    checked = now;
    return complete(more, { enrolments: read, limit, spent, committed, answered });
  };

  async function enrolmentOf({ url, token, ticket, queue, campaign: document, client: plain, halted = null, ...more }, now) {
    const campaign = await Campaign.restore(document, fingerprintOf(url));
    const client = await Client.restore(plain, campaign);
    must(client.every === campaign.schedule.every);
    must((token === null || isVisible(token)) && (ticket === null || isTicket(ticket)) && [null, ...HALTED].includes(halted));
    const { key: ownKey, secret } = plain;
    for (const [round, text] of queue) {
      const whose = secret + round;
      const isKnown = checked.get(text) === whose;
      must(isInteger(round) && client.hasAnswered(round));
      must(isKnown || (await isReportOf({ campaign, client, ownKey, ticket }, round, text)));
      now.set(text, whose);
    }
    return complete(more, { url, token, ticket, campaign, client, queue, ...(halted && { halted }) });
  }

  return (text) => sound(() => stateOf(text));
}

/** What an agreement that does not say it, as those of release 0.2.0, committed before. */
const implied = (limit, spent, enrolments) =>
  committedBefore(limit, sum(enrolments.map(({ client }) => client.spentBefore), spent) > 0, spent);

/** What was read, where there is no more: written again, a state would lack it. */
function complete(more, read) {
  must(!Object.keys(more).length, UNKNOWN, StateError);
  return read;
}

/** As text, secrets included; null where there is nothing to keep. */
export async function textOf({ enrolments, limit, spent, committed, answered }) {
  // What a state without it means is left out.
  const optional = (name, without) => !Object.is(committed, without) && { [name]: committed };
  const hasRounds = Object.keys(answered).join("");
  let plain = { type: LEDGER, version: 1, spent, answered, ...optional("committed", spent) };
  if (enrolments.length) {
    plain = {
      type: TYPE,
      version: VERSION,
      limit,
      spent_before: spent,
      ...optional("committed_before", implied(limit, spent, enrolments)),
      enrolments: await Promise.all(enrolments.map(plainOf)),
      ...(hasRounds && { answered_before: answered }),
    };
  } else if (!spent && !committed && !hasRounds) return null;
  return canonical(await sealed(plain));
}

const plainOf = async (enrolment) => ({
  ...enrolment,
  campaign: enrolment.campaign.plain,
  client: await enrolment.client.plain(),
});

/** What is left once consent ends: what was spent, committed and answered; no key, no memo, no report. */
export function ledgerAfter({ enrolments, spent, committed, answered }) {
  // Who asks a collector meanwhile must see that an agreement ended, of which nothing else may be left. It is
  // counted as the rounds of no campaign: releases that know of no count keep them.
  const ledger = { ...nothing(), spent, committed: committed || spent, answered: { ...answered, "": [[0, 1 + (answered[""]?.at(-1)?.[1] ?? 0)]] } };
  for (const { campaign: { fingerprint }, client } of enrolments) {
    const { account } = client;
    ledger.spent += account.spent;
    // One that never reported revealed nothing, and its key is deleted.
    ledger.committed += client.sentRounds.length ? account.committed : client.committedBefore;
    ledger.answered[fingerprint] = including(ledger.answered[fingerprint] ?? [], account.answered);
  }
  return ledger;
}

/** What an agreement, or what outlives one, says of the time before it. */
const ledgerOf = ({ spent_before, spent = spent_before, committed_before, committed = committed_before, answered_before, answered = answered_before, ...more }) => ({
  spent,
  committed,
  answered,
  ...more,
});

/** What can still be read, in a state that is damaged, of what was spent and answered before it. */
export function remainsOf(text) {
  const { spent, committed, answered } = ledgerOf(Object(tried(parse, text)));
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

/** The same enrolment in another state; nothing if it is there no more. */
export const sameIn = ({ enrolments }, { url }) => enrolments.find((one) => one.url === url) ?? {};

/** The enrolments of a state, of which there must be some. */
export function agreed({ enrolments }) {
  must(enrolments.length, "consent must be given before anything is reported; ask the user", StateError);
  return enrolments;
}

/** The only enrolment of a state. */
export function only(state) {
  const [enrolment, another] = agreed(state);
  must(!another, "campaign must be the only one; use reportAll, deliverAll", StateError);
  return enrolment;
}

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
export const assigned = ({ protocol: { encoding } }, answer) =>
  tried(() => {
    const { key: text, ticket } = answer;
    const key = encoding.keyFrom(text);
    // Every digit is there, and no other.
    must(encoding.isKey(key) && keyText(encoding, key) === text && isTicket(ticket));
    return { key, ticket };
  });
