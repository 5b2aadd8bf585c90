/** What a sender keeps: consent, campaign, client and queue; text that Python's `Sender` reads too. */

import { Campaign } from "./campaign.js";
import { isObject } from "./check.js";
import { Client, KEPT_ROUNDS } from "./client.js";
import { LolohaError, ParameterError, StateError } from "./errors.js";
import { canonical, parse } from "./json.js";
import { encode } from "./message.js";

const TYPE = "loloha-sender";
const VERSION = 1;
const ADDRESS = /\/v1\/campaigns\/([0-9a-f]{64})$/;
const LARGEST_TICKET = 100;

/** The consent of one user to one campaign, and everything that follows from it. */
export class State {
  answered = [];
  /** round -> message, as it is or was sent. */
  queue = new Map();

  constructor({ url, token = null, ticket = null, campaign, client }) {
    Object.assign(this, { url, token, ticket, campaign, client });
  }

  /** Sanitise the value of a round, and queue the report; false if the round was answered. */
  async report(value, round) {
    if (this.answered.includes(round)) return false;
    const { campaign, client, ticket } = this;
    const report = client.report(campaign.index(value), round);
    const reporter = await client.reporter(round);
    this.queue.set(round, encode(campaign, report, { round, reporter, ticket }));
    this.answered = [...this.answered, round].slice(-KEPT_ROUNDS);
    return true;
  }

  /** Forget key, memo and queue, and start as a new user. */
  reset() {
    if (this.campaign.keys === "assigned") {
      throw new StateError("key must be assigned anew; withdraw, and agree again");
    }
    const said = this.client.reset();
    this.answered = [];
    this.queue.clear();
    return said;
  }

  async text() {
    const { url, token, ticket, answered } = this;
    return canonical({
      type: TYPE,
      version: VERSION,
      url,
      token,
      ticket,
      campaign: this.campaign.plain,
      client: await this.client.plain(),
      answered,
      queue: [...this.queue].sort(([one], [other]) => one - other),
    });
  }

  /** The state that `text` wrote, null if there is none. */
  static async read(text) {
    if (text === null) return null;
    try {
      return await State.#parsed(parse(text));
    } catch (error) {
      if (error instanceof StateError) throw error;
      // The cause could quote the state.
      throw new StateError("state must be what a sender wrote; it is damaged");
    }
  }

  static async #parsed(plain) {
    if (!isObject(plain) || plain.type !== TYPE || plain.version !== VERSION) {
      throw new StateError(
        `state must be of type '${TYPE}', version ${VERSION}; use the release that wrote it`,
      );
    }
    const campaign = await Campaign.restore(plain.campaign, fingerprintOf(plain.url));
    const client = await Client.restore(plain.client, { protocol: campaign.protocol });
    const { url, token, ticket } = plain;
    const state = new State({ url, token, ticket, campaign, client });
    const { answered, queue } = plain;
    const isRound = (round) => Number.isSafeInteger(round) && round >= 0;
    const sound =
      [token, ticket].every((one) => one === null || isShort(one)) &&
      answered.every(isRound) &&
      queue.every(([round, message]) => isRound(round) && typeof message === "string");
    if (!sound) throw new LolohaError();
    state.answered = answered;
    state.queue = new Map(queue);
    return state;
  }
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
