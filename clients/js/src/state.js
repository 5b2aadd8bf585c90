/** What a sender keeps: one consent, to one campaign or several under one limit. Python reads it too. */

import { Campaign } from "./campaign.js";
import { isAmount, isCount, isObject, tried } from "./check.js";
import { Client } from "./client.js";
import { BudgetError, DAMAGED, ParameterError, StateError, must } from "./errors.js";
import { canonical, parse } from "./json.js";
import { encode } from "./message.js";
import { ascending, unhex } from "./number.js";
import { areRounds, including } from "./rounds.js";

const TYPE = "loloha-sender";
const VERSION = 2;
const LEDGER = "loloha-spent";
/** Reports of one campaign that wait to be sent; beyond it the oldest is dropped. */
const MOST_QUEUED = 1000;
const ADDRESS = /^https?:\/\/[^@/]+(?:\/[^?#]*)?\/v1\/campaigns\/([0-9a-f]{64})$/;

/** One user in one campaign. */
export class Enrolment {
  /** round -> message, as it is or was sent. */
  queue = new Map();

  constructor(parts) {
    Object.assign(this, parts);
  }

  /** Sanitise the value of a round, and queue the report: the round, or null at the limit. */
  async report(value, round, left) {
    const { campaign, client, ticket } = this;
    const index = campaign.index(value);
    if (client.hasAnswered(round)) return round;
    let report;
    try {
      report = client.report(index, round, left);
    } catch (error) {
      if (error instanceof BudgetError) return null;
      throw error;
    }
    const reporter = await client.reporter(round);
    // Of many that wait the oldest ones are late first. What they spent stays spent.
    for (const old of this.waiting.slice(0, 1 - MOST_QUEUED)) this.queue.delete(old);
    this.queue.set(round, encode(campaign, report, { round, reporter, ticket }));
    return round;
  }

  get waiting() {
    return [...this.queue.keys()].sort(ascending);
  }

  async plain() {
    const { url, token, ticket, campaign, client, waiting } = this;
    const queue = waiting.map((round) => [round, this.queue.get(round)]);
    return { url, token, ticket, campaign: campaign.plain, client: await client.plain(), queue };
  }

  static async read(plain) {
    const campaign = await Campaign.restore(plain.campaign, fingerprintOf(plain.url));
    const client = await Client.restore(plain.client, { protocol: campaign.protocol });
    const { url, token, ticket, queue } = plain;
    possible([token, ticket].every((one) => one === null || isVisible(one)));
    for (const [round, text] of queue) {
      possible(isCount(round) && client.hasAnswered(round));
      possible(JSON.parse(text).round === round);
    }
    return new Enrolment({ url, token, ticket, campaign, client, queue: new Map(queue) });
  }
}

/** Everything that one storage holds: an agreement, or what outlives one. */
export class State {
  /** Empty without consent. */
  enrolments = [];
  /** Hard limit on `loss`. */
  limit = null;
  /** Spent under agreements before this one; `answered` are their rounds, by fingerprint. */
  spentBefore = 0;
  answered = {};

  /** Everything spent so far: the losses of all campaigns add up. */
  get loss() {
    return this.enrolments.reduce((sum, { client }) => sum + client.loss, this.spentBefore);
  }

  get consent() {
    return this.enrolments.length > 0;
  }

  /** What the others leave of the limit to one client. */
  left({ client }) {
    return this.limit === null ? null : this.limit - (this.loss - client.loss);
  }

  /** Forget keys, memos and queues, and start as a new user. */
  reset(options) {
    const drawn = this.enrolments.every(({ campaign }) => campaign.keys === "drawn");
    must(drawn, StateError, "keys must be assigned anew; withdraw and agree again");
    const said = this.enrolments.map((one) => {
      one.queue.clear();
      return one.client.reset(options);
    });
    const spent =
      "Key, memo and sent reports are forgotten. What was sent stays counted, " +
      `the ${this.loss} spent so far stays spent.`;
    return said.length === 1 ? said[0] : spent;
  }

  /** What stays after a withdrawal: how much was spent, and which rounds were answered. */
  withdrawn() {
    const after = new State();
    after.spentBefore = this.loss;
    after.answered = { ...this.answered };
    for (const { campaign, client } of this.enrolments) {
      const { fingerprint } = campaign;
      const earlier = this.answered[fingerprint] ?? [];
      after.answered[fingerprint] = including(earlier, client.account.answered);
    }
    return after;
  }

  /** As text, secrets included; null where there is nothing to keep. */
  async text() {
    const { answered, limit, spentBefore: spent } = this;
    if (!this.consent) return spent ? canonical({ type: LEDGER, version: 1, spent, answered }) : null;
    return canonical({
      type: TYPE,
      version: VERSION,
      limit,
      spent_before: spent,
      enrolments: await Promise.all(this.enrolments.map((one) => one.plain())),
      ...(Object.keys(answered).length ? { answered_before: answered } : {}),
    });
  }

  /** The state that `text` wrote. */
  static async read(text) {
    const state = new State();
    if (text === null) return state;
    try {
      await state.#fill(parse(text));
    } catch (error) {
      // Another cause could quote the state.
      throw error instanceof StateError ? error : new StateError(DAMAGED);
    }
    return state;
  }

  async #fill(plain) {
    const { type, version } = plain;
    if (type === LEDGER && version === 1) {
      this.spentBefore = plain.spent;
      this.answered = plain.answered;
    } else {
      const known = type === TYPE && version === VERSION;
      must(known, StateError, "state must be of a known version; use a newer release");
      this.limit = plain.limit;
      this.spentBefore = plain.spent_before;
      this.answered = plain.answered_before ?? {};
      this.enrolments = await Promise.all(plain.enrolments.map(Enrolment.read));
      possible(this.consent);
    }
    possible(isAmount(this.spentBefore) && (this.limit === null || isAmount(this.limit)));
    possible(Object.values(this.answered).every(areRounds));
  }
}

const possible = (holds) => must(holds, StateError, DAMAGED);

/** The fingerprint that an address ends with. */
export function fingerprintOf(url) {
  const address = tried(() => ADDRESS.exec(new URL(url).href));
  must(address, ParameterError, "url must be https://HOST/v1/campaigns/FINGERPRINT");
  return address[1];
}

/** Key and ticket of what a collector answered, null if it holds neither. */
export function assigned(campaign, said) {
  const { encoding } = campaign.protocol;
  const { key: text, ticket } = isObject(said) ? said : {};
  const isKey = isVisible(text, 2 * encoding.keyBytes) && unhex(text)?.length === encoding.keyBytes;
  const key = isKey && isVisible(ticket) ? encoding.keyFrom(text) : null;
  return encoding.isKey(key) ? { key, ticket } : null;
}

/**
 * Whether it is a short text of visible ASCII characters. A ticket goes out with every report: it must
 * not become a place for whatever a server likes.
 */
const isVisible = (text, longest = 100) =>
  typeof text === "string" && text.length <= longest && /^[!-~]*$/.test(text);
