/** One user's device: key, memo, what was sent for which round. The only thing that sees values. */

import * as check from "./check.js";
import { BudgetError, DAMAGED, ParameterError, StateError, must } from "./errors.js";
import { canonical, parse } from "./json.js";
import { hex, hmac256, sha256, unhex } from "./number.js";
import { Protocol } from "./protocol.js";
import { SecureRng } from "./rng.js";
import { areRounds, holds, including } from "./rounds.js";

const TYPE = "loloha-client";
const VERSION = 2;
const SECRET_BYTES = 32;

/** How many answered rounds a client remembers. */
export const KEPT_ROUNDS = 64;

const NOTHING = { spent: 0, answered: [] };

/** The secret state of one user. Do not copy it: a second copy would draw its own answers. */
export class Client {
  #rng;
  #key;
  #memo;
  #table;
  #sent;
  #answered;
  #reports;
  #spentBefore = 0;
  #secret;
  #limit;

  /**
   * @param {Protocol} protocol
   * @param {object} [options]
   * @param options.key what the server assigned; by default drawn here
   * @param {number} [options.limit] hard limit on `loss`
   * @param options.rng for simulations and tests only
   * @param {object} [options.account] `account` of the same user's earlier client
   */
  constructor(protocol, { key = null, limit = null, rng = new SecureRng(), account = NOTHING } = {}) {
    this.protocol = protocol;
    this.#rng = rng;
    this.#spentBefore = account.spent;
    this.setLimit(limit);
    const isKey = key === null || (protocol.longitudinal && protocol.encoding.isKey(key));
    must(isKey, ParameterError, "key must be one of the protocol's (not shown)");
    this.#begin(key, account.answered);
  }

  /** Start with an empty memo and, unless one is given, a new key. */
  #begin(key, answered) {
    const { protocol } = this;
    this.#key = key === null && protocol.longitudinal ? protocol.enroll(this.#rng) : key;
    this.#memo = new Map();
    this.#table = this.protocol.remember(this.#rng);
    this.#sent = new Map();
    this.#reports = 0;
    this.#answered = answered;
    this.#secret = globalThis.crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
  }

  /**
   * The sanitised report {key, y} of `value`, 0..k-1, for one round.
   *
   * A round is answered once: asking again gives the same report, whatever the value. `limit` is
   * the client's own unless one is given, as where several clients share one.
   */
  report(value, round, limit = this.#limit) {
    this.protocol.checkValue(value);
    check.round(round);
    const before = this.#sent.get(round);
    if (before) return copied(before);
    must(!this.hasAnswered(round), StateError, "round must be one not answered yet");
    const report = this.protocol.longitudinal
      ? this.#memoised(value, limit)
      : this.#fresh(value, limit);
    this.#remember(round, report);
    return copied(report);
  }

  #memoised(value, limit) {
    const { protocol } = this;
    const x = protocol.encoding.memoIndex(this.#key, value);
    let kept = this.#memo.get(x);
    if (kept === undefined) {
      this.#afford(limit);
      kept = this.#table ? this.#table[x] : protocol.permanent(this.#rng, x);
    }
    const y = protocol.instant(this.#rng, kept);
    this.#memo.set(x, kept);
    return { key: this.#key, y };
  }

  #fresh(value, limit) {
    const { protocol } = this;
    this.#afford(limit);
    const key = protocol.enroll(this.#rng);
    return { key, y: protocol.permanent(this.#rng, protocol.encoding.memoIndex(key, value)) };
  }

  /** Refuse a new answer that would take the loss above the limit. */
  #afford(limit) {
    // The tolerance only absorbs rounding: 3 x 0.1 is within a limit of 0.3.
    const holds = limit === null || this.#lossAfter(1) <= limit * (1 + 1e-12);
    must(holds, BudgetError, "loss must stay within the limit; send nothing");
  }

  #remember(round, report) {
    this.#reports += 1;
    this.#sent.set(round, report);
    this.#answered = including(this.#answered, [[round, round]]);
    // A map keeps the order of answering.
    if (this.#sent.size > KEPT_ROUNDS) this.#sent.delete(this.#sent.keys().next().value);
  }

  /** Whether a round was answered, or counts as such; it is never answered again. */
  hasAnswered(round) {
    return holds(this.#answered, round);
  }

  /** The newest rounds that were answered, in the order of answering. */
  get sentRounds() {
    return [...this.#sent.keys()];
  }

  /** What was spent and which rounds were answered, for a later client of this user. */
  get account() {
    return { spent: this.loss, answered: this.#answered };
  }

  /** Pseudonym for one round, 32 hexadecimal digits: a retry is recognised by it. */
  async reporter(round) {
    check.round(round);
    return (await hmac256(this.#secret, `round ${round}`)).slice(0, 32);
  }

  /** Budget spent so far. */
  get loss() {
    return this.#lossAfter(0);
  }

  #lossAfter(more) {
    const units = this.protocol.longitudinal ? this.#memo.size : this.#reports;
    return this.#spentBefore + this.protocol.spent(units + more);
  }

  /** Most that `loss` can become without another `reset`. */
  get cap() {
    return this.#spentBefore + this.protocol.cap;
  }

  get limit() {
    return this.#limit;
  }

  /** Replace the hard limit on `loss`; null takes it away. */
  setLimit(limit) {
    if (limit !== null) check.real("limit", limit, this.protocol.loss, Number.MAX_VALUE);
    this.#limit = limit;
  }

  /**
   * Forget key, memo and sent reports, and start as a new user; what was spent stays spent.
   *
   * @param {object} [options]
   * @param {boolean} [options.wait] whether to wait for rounds that were not answered yet; if not, a
   *   round that was counted and is answered again counts this user twice
   */
  reset({ wait = false } = {}) {
    const { spent, answered } = this.account;
    this.#spentBefore = spent;
    this.#begin(null, wait ? answered : []);
    return (
      `Key, memo and sent reports are forgotten. What was sent stays counted, the ${spent} spent ` +
      `so far stays spent; new reports can spend up to ${this.protocol.cap} on top of it.`
    );
  }

  // -- persistence

  /** The whole state, secrets included, as text that Python's `Client.load` reads too. */
  async save() {
    return canonical(await this.plain());
  }

  /** The same, ready for `canonical`. */
  async plain() {
    const { encoding } = this.protocol;
    const byNumber = ([one], [other]) => one - other;
    const state = {
      type: TYPE,
      version: VERSION,
      protocol: this.protocol.spec,
      key: this.#key,
      memo: [...this.#memo].sort(byNumber).map(([x, kept]) => [x, encoding.answerPlain(kept)]),
      sent: [...this.#sent].map(([round, { key, y }]) => [round, key, encoding.answerPlain(y)]),
      answered: this.#answered,
      reports: this.#reports,
      spent_before: this.#spentBefore,
      limit: this.#limit,
      secret: hex(this.#secret),
      ...(this.#table ? { table: this.#table } : {}),
    };
    return { ...state, checksum: await sha256(canonical(state)) };
  }

  /** The client that `save` wrote; it goes on exactly where that one was. */
  static async load(text, options) {
    return Client.restore(check.tried(() => parse(text)), options);
  }

  /** The client of a state that is parsed already. */
  static async restore(state, { protocol, rng } = {}) {
    check.release("state", state, TYPE, VERSION, StateError);
    let client;
    try {
      const stored = new Protocol(state.protocol);
      const key = stored.encoding.keyPlain(state.key);
      possible(!stored.longitudinal || stored.encoding.isKey(key));
      client = new Client(stored, { key, limit: state.limit });
      client.#restore(state);
      possible(state.checksum === (await client.plain()).checksum);
    } catch {
      throw new StateError(DAMAGED);
    }
    const isFor = !protocol || canonical(protocol.spec) === canonical(client.protocol.spec);
    must(isFor, StateError, "state must be for the given protocol");
    client.#rng = rng ?? client.#rng;
    return client;
  }

  #restore(state) {
    const { encoding } = this.protocol;
    const answer = (plain) => {
      const y = encoding.answerFrom(plain);
      possible(encoding.isAnswer(y));
      return y;
    };
    this.#memo = new Map(state.memo.map(([x, kept]) => [x, answer(kept)]));
    this.#sent = new Map(
      state.sent.map(([round, key, y]) => [
        round,
        { key: encoding.keyPlain(key), y: answer(y) },
      ]),
    );
    if (this.#table) {
      this.#table = state.table;
      possible(state.table.length === encoding.memoSymbols && state.table.every(encoding.isAnswer));
      for (const [x, kept] of this.#memo) possible(state.table[x] === kept);
    }
    this.#answered = state.answered;
    this.#reports = state.reports;
    this.#spentBefore = state.spent_before;
    this.#secret = unhex(state.secret);
    possible(check.isCount(this.#reports) && areRounds(this.#answered));
    for (const x of this.#memo.keys()) possible(check.isInteger(x, 0, encoding.memoSymbols - 1));
    for (const [round, { key }] of this.#sent) {
      possible(check.isCount(round) && this.hasAnswered(round) && encoding.isKey(key));
    }
    possible(this.#memo.size <= encoding.memoCells);
    possible(this.#sent.size <= Math.min(KEPT_ROUNDS, this.#reports));
    possible(check.isAmount(this.#spentBefore) && this.#secret.length === SECRET_BYTES);
  }
}

const possible = (holds) => must(holds, StateError);

/** A report that shares nothing with what is remembered of it. */
const copied = ({ key, y }) => ({
  key: Array.isArray(key) ? [...key] : key,
  y: typeof y === "number" ? y : y.slice(),
});
