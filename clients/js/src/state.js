/** What a sender keeps: one consent, to one campaign or several under one limit. Python reads it too. */

import { HALTED } from "./answer.js";
import { Campaign } from "./campaign.js";
import { isAmount, isInteger, tried } from "./check.js";
import { Client } from "./client.js";
import { keyOf } from "./encoding.js";
import { StateError, UNKNOWN, must, sound } from "./errors.js";
import { canonical, parse, sealed, unsealed } from "./json.js";
import { committedBefore } from "./limit.js";
import { isReportOf } from "./message.js";
import { byNumber, sum } from "./number.js";
import { isVisible } from "./post.js";
import { areRounds, including } from "./rounds.js";

const TYPE = "loloha-sender";
const VERSION = 2;
const LEDGER = "loloha-spent";
/** A ticket goes out with every report: it must not become a place for whatever a server likes. */
const isTicket = (ticket) => typeof ticket === "string" && /^[0-9a-f]{32}$/.test(ticket);
// As it is written: a browser mends others, such as one with a space at its end, and asks elsewhere.
const LABEL = String.raw`(?:[\w-]|[^\0-\x7f\s]){1,63}`;
const HOST = String.raw`(\[[\da-fA-F:.]+\]|(?:${LABEL}\.)*${LABEL}\.?)(?::\d{1,5})?`;
const PATH = String.raw`(?:\/(?!(?:\.|%2[Ee]){1,2}\/)[\w.~!$&'()*+,;=:@%-]*)*`;
const ADDRESS = RegExp(`^(?:https?|HTTPS?)://${HOST}${PATH}/v1/campaigns/([0-9a-f]{64})/*$`);

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

/** The state of a text that `textOf` wrote, or of none; one that is known to be sound is not checked again. */
export const stateOf = (text, isKnown = false) => sound(() => readState(text, isKnown));

async function readState(text, isKnown) {
  if (text === null) return nothing();
  const plain = parse(text);
  // Releases up to 0.2.1 left it out of what outlives an agreement, 0.2.0 everywhere.
  const whole = plain.checksum ? await unsealed(plain) : plain;
  const { type, version, enrolments: all = [], limit = null, ...rest } = whole;
  must(version === { [LEDGER]: 1, [TYPE]: VERSION }[type], UNKNOWN, StateError);
  const enrolments = await Promise.all(all.map((one) => enrolmentOf(one, isKnown)));
  const { spent, committed = implied(limit, spent, enrolments), answered = {} } = ledgerOf(rest);
  must(
    haveNames(enrolments) &&
      isAmount(spent) &&
      // Where it is left out, and not known either.
      (Number.isNaN(committed) || isAmount(committed)) &&
      isAmount(limit ?? 1) &&
      limit !== 0 &&
      Object.values(answered).every(areRounds),
  );
  const state = { enrolments, limit, spent, committed, answered };
  // What would be written otherwise, with a member less for example, this release cannot keep.
  must(isKnown || (await textOf(state)) === (await sealedText(whole)), UNKNOWN, StateError);
  return state;
}

async function enrolmentOf({ url, token, ticket, queue, campaign: document, client: plain, halted = null }, isKnown) {
  const campaign = await Campaign.restore(document, fingerprintOf(url));
  must(!url.endsWith("/"));
  const client = await Client.restore(plain, campaign);
  must(client.every === campaign.schedule.every);
  must((token === null || isVisible(token)) && (ticket === null || isTicket(ticket)) && [null, ...HALTED].includes(halted));
  const one = { url, token, ticket, campaign, client, ...(halted && { halted }) };
  // Each round once, in order: else what is written is not what was read.
  one.queue = [...new Map(queue)].sort(byNumber);
  for (const [round, text] of isKnown ? [] : one.queue) {
    must(isInteger(round) && client.hasAnswered(round) && (await isReportOf(one, plain.key, round, text)));
  }
  return one;
}

/** What an agreement that does not say it, as those of release 0.2.0, committed before. */
const implied = (limit, spent, enrolments) =>
  committedBefore(limit, sum(enrolments.map(({ client }) => client.spentBefore), spent) > 0, spent);

/** As text, secrets included; null where there is nothing to keep. */
export async function textOf({ enrolments, limit, spent, committed, answered }) {
  // What a state without it means is left out.
  const optional = (name, without) => !Object.is(committed, without) && { [name]: committed };
  const hasRounds = Object.keys(answered).join("");
  let plain = { type: LEDGER, version: 1, spent, answered: { ...answered }, ...optional("committed", spent) };
  if (enrolments.length) {
    plain = {
      type: TYPE,
      version: VERSION,
      limit,
      spent_before: spent,
      ...optional("committed_before", implied(limit, spent, enrolments)),
      enrolments: await Promise.all(enrolments.map(plainOf)),
      ...(hasRounds && { answered_before: { ...answered } }),
    };
  } else if (!spent && !committed && !hasRounds) return null;
  return sealedText(plain);
}

const sealedText = async (plain) => canonical(await sealed(plain));

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
const ledgerOf = ({ spent_before, spent = spent_before, committed_before, committed = committed_before, answered_before, answered = answered_before }) => ({
  spent,
  committed,
  answered,
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
  const fingerprint = tried(() => {
    const { port, hostname } = new URL(url);
    const [, host, one] = ADDRESS.exec(url);
    const isAsWritten = port !== "0" && (/[^\w.-]/.test(host) || hostname === host.toLowerCase());
    return isAsWritten && one;
  });
  must(fingerprint, "url must be https://HOST/v1/campaigns/FINGERPRINT");
  return fingerprint;
}

/** The address of a campaign as it is stored: without slashes at its end. */
export function addressOf(url) {
  fingerprintOf(url);
  return url.replace(/\/+$/, "");
}

/** Key and ticket of what a collector answered, undefined if it holds neither. */
export const assigned = ({ protocol: { encoding } }, answer) =>
  tried(() => {
    const { ticket } = answer;
    const key = keyOf(encoding, answer.key);
    must(isTicket(ticket));
    return { key, ticket };
  });
