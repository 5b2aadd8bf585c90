/** What a sender keeps: one consent, to one campaign or several under one limit. Python reads it too. */

import { Campaign } from "./campaign.js";
import { isObject } from "./check.js";
import { Client } from "./client.js";
import { BudgetError, LolohaError, ParameterError, StateError } from "./errors.js";
import { Float, canonical, parse } from "./json.js";
import { encode } from "./message.js";
import { areRounds, including } from "./rounds.js";

const TYPE = "loloha-sender";
const VERSION = 2;
const LEDGER = "loloha-spent";
const ADDRESS = /\/v1\/campaigns\/([0-9a-f]{64})$/;
const LARGEST_TICKET = 100;

/** One user in one campaign. */
export class Enrolment {
  /** round -> message, as it is or was sent. */
  queue = new Map();

  constructor({ url, token = null, ticket = null, campaign, client }) {
    Object.assign(this, { url, token, ticket, campaign, client });
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
    this.queue.set(round, encode(campaign, report, { round, reporter, ticket }));
    return round;
  }

  get waiting() {
    return [...this.queue.keys()].sort((one, other) => one - other);
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
    must([token, ticket].every((one) => one === null || isShort(one)));
    must(queue.every(([round, text]) => client.hasAnswered(round) && typeof text === "string"));
    const enrolment = new Enrolment({ url, token, ticket, campaign, client });
    enrolment.queue = new Map(queue);
    return enrolment;
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
    if (this.enrolments.some(({ campaign }) => campaign.keys === "assigned")) {
      throw new StateError("key must be assigned anew; withdraw, and agree again");
    }
    const said = this.enrolments.map((one) => {
      one.queue.clear();
      return one.client.reset(options);
    });
    const spent = `Keys, memos and sent reports are forgotten. The ${this.loss} spent so far stays spent.`;
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
    const spent = new Float(this.spentBefore);
    if (!this.consent) {
      const { answered } = this;
      return this.spentBefore ? canonical({ type: LEDGER, version: 1, spent, answered }) : null;
    }
    return canonical({
      type: TYPE,
      version: VERSION,
      limit: this.limit === null ? null : new Float(this.limit),
      spent_before: spent,
      enrolments: await Promise.all(this.enrolments.map((one) => one.plain())),
      ...(Object.keys(this.answered).length ? { answered_before: this.answered } : {}),
    });
  }

  /** The state that `text` wrote. */
  static async read(text) {
    const state = new State();
    if (text === null) return state;
    try {
      await state.#fill(parse(text));
    } catch (error) {
      if (error instanceof StateError) throw error;
      // The cause could quote the state.
      throw new StateError("state must be what a sender wrote; it is damaged");
    }
    return state;
  }

  async #fill(plain) {
    must(isObject(plain));
    const { type, version } = plain;
    if (type === LEDGER && version === 1) {
      this.spentBefore = plain.spent;
      this.answered = plain.answered;
    } else if (type === TYPE && version === 1) {
      const one = await Enrolment.read(plain);
      this.enrolments = [one];
      this.limit = one.client.limit;
      one.client.setLimit(null);
    } else if (type === TYPE && version === VERSION) {
      this.limit = plain.limit;
      this.spentBefore = plain.spent_before;
      this.answered = plain.answered_before ?? {};
      this.enrolments = await Promise.all(plain.enrolments.map(Enrolment.read));
      must(this.consent);
    } else {
      throw new StateError("state must be of a known type and version; use the release that wrote it");
    }
    const isAmount = (x) => typeof x === "number" && x >= 0 && x < Infinity;
    must(isAmount(this.spentBefore) && (this.limit === null || isAmount(this.limit)));
    must(Object.values(this.answered).every(areRounds));
  }
}

function must(holds) {
  if (!holds) throw new LolohaError("impossible");
}

/** The fingerprint that an address ends with. */
export function fingerprintOf(url) {
  let address = null;
  try {
    const { protocol, pathname, username, search, hash } = new URL(url);
    const plain = /^https?:$/.test(protocol) && !username && !search && !hash;
    address = plain ? ADDRESS.exec(pathname) : null;
  } catch {
    // Not an address at all.
  }
  if (!address) {
    throw new ParameterError(
      "url must be https://HOST/v1/campaigns/FINGERPRINT, got another; copy the campaign's address",
    );
  }
  return address[1];
}

/** Key and ticket of what a collector answered, null if it holds neither. */
export function assigned(campaign, said) {
  const { encoding } = campaign.protocol;
  const known =
    isObject(said) &&
    typeof said.key === "string" &&
    /^[0-9a-f]*$/.test(said.key) &&
    said.key.length === 2 * encoding.keyBytes &&
    isShort(said.ticket);
  const key = known ? encoding.keyFrom(said.key) : null;
  return known && encoding.isKey(key) ? { key, ticket: said.ticket } : null;
}

// A ticket goes out with every report: it must not become a place for whatever a server likes.
const isShort = (text) => typeof text === "string" && /^[!-~]*$/.test(text) && text.length <= LARGEST_TICKET;
