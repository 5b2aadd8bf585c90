/** One user's device: key, memo, what was sent for which round. The only thing that sees values. */

import { isAmount, isInteger, real, round as checkRound } from "./check.js";
import { BudgetError, DomainError, StateError, UNKNOWN, must, sound } from "./errors.js";
import { canonical, parse } from "./json.js";
import { byNumber, digest, hex, sha256, unhex } from "./number.js";
import { Protocol } from "./protocol.js";
import { SecureRng } from "./rng.js";
import { areRounds, including } from "./rounds.js";

const TYPE = "loloha-client";
const VERSION = 2;
const SECRET_BYTES = 32;

/** How many answered rounds a client remembers. */
export const KEPT_ROUNDS = 64;

/** The secret state of one user. Do not copy it: a second copy would draw its own answers. */
export class Client {
  #rng;
  /** What `save` writes, but for its checksum. */
  #state;

  /**
   * @param {Protocol} protocol
   * @param {object} [options]
   * @param options.key what the server assigned; by default drawn here
   * @param {number} [options.limit] hard limit on `loss`
   * @param options.rng for simulations and tests only
   * @param {object} [options.account] `account` of the same user's earlier client
   */
  constructor(protocol, { key = null, limit = null, rng = new SecureRng(), account = {} } = {}) {
    this.protocol = protocol;
    this.#rng = rng;
    const isKey = key === null || (protocol.longitudinal && protocol.encoding.isKey(key));
    must(isKey, "key must be of the protocol (not shown)");
    this.#begin(key, account);
    this.setLimit(limit);
  }

  /** Start with an empty memo and, unless one is given, a new key. */
  #begin(key, { spent = 0, answered = [] }) {
    const { spec, longitudinal, encoding } = this.protocol;
    this.#state = {
      limit: null,
      ...this.#state,
      type: TYPE,
      version: VERSION,
      protocol: spec,
      key: key === null && longitudinal ? encoding.drawKey(this.#rng) : key,
      memo: [],
      sent: [],
      answered,
      reports: 0,
      spent_before: spent,
      secret: hex(crypto.getRandomValues(new Uint8Array(SECRET_BYTES))),
      ...(spec.memo && { table: this.protocol.drawTable(this.#rng) }),
    };
  }

  /**
   * The sanitised report {key, y} of `value`, 0..k-1, for one round.
   *
   * A round is answered once: asking again gives the same report, whatever the value. `limit` is
   * the client's own unless one is given, as where several clients share one.
   */
  report(value, round, limit = this.limit) {
    const isIndex = isInteger(value, this.protocol.k - 1);
    must(isIndex, "value must be an index (not shown)", DomainError);
    checkRound("round", round);
    const state = this.#state;
    let sent = state.sent.find(([one]) => one === round);
    if (!sent) {
      must(!this.hasAnswered(round), "round must be later", StateError);
      sent = [round, ...this.#answer(value, limit)];
      if (state.sent.push(sent) > KEPT_ROUNDS) state.sent.shift();
      state.reports += 1;
      state.answered = including(state.answered, [[round, round]]);
    }
    const [, key, y] = sent;
    // They share nothing with what is remembered.
    return { key: Array.isArray(key) ? [...key] : key, y: this.protocol.encoding.answerFrom(y) };
  }

  /** Key and answer: drawn afresh from the kept answer to the memo symbol, or, of one-round rules, alone. */
  #answer(value, limit) {
    const { longitudinal, encoding, first, second } = this.protocol;
    const { memo, table } = this.#state;
    const draw = (from, thresholds) => encoding.answerPlain(encoding.draw(this.#rng, from, thresholds));
    let { key } = this.#state;
    let x = longitudinal && encoding.memoIndex(key, value);
    let [, kept] = memo.find(([one]) => one === x) ?? [];
    if (kept === undefined) {
      // The tolerance only absorbs rounding: 3 x 0.1 is within a limit of 0.3.
      const isWithin = this.#lossAfter(1) <= (limit ?? Infinity) * (1 + 1e-12);
      must(isWithin, "limit must be higher; report nothing", BudgetError);
      if (!longitudinal) {
        key = encoding.drawKey(this.#rng);
        x = encoding.memoIndex(key, value);
      }
      kept = table ? table[x] : draw(encoding.certain(x), first);
      if (longitudinal) {
        memo.push([x, kept]);
        memo.sort(byNumber);
      }
    }
    return [key, second ? draw(encoding.answerFrom(kept), second) : kept];
  }

  /** Whether a round was answered, or counts as such; it is never answered again. */
  hasAnswered(round) {
    return this.#state.answered.some(([first, last]) => first <= round && round <= last);
  }

  /** The newest rounds that were answered, in the order of answering. */
  get sentRounds() {
    return this.#state.sent.map(([round]) => round);
  }

  /** What was spent and which rounds were answered, for a later client of this user. */
  get account() {
    return { spent: this.loss, answered: this.#state.answered };
  }

  /** Pseudonym for one round, 32 hexadecimal digits: a retry is recognised by it. */
  async reporter(round) {
    checkRound("round", round);
    const { subtle } = crypto;
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    const key = await subtle.importKey("raw", unhex(this.#state.secret), algorithm, false, ["sign"]);
    return (await digest(`round ${round}`, (bytes) => subtle.sign("HMAC", key, bytes))).slice(0, 32);
  }

  /** Budget spent so far. */
  get loss() {
    return this.#lossAfter(0);
  }

  #lossAfter(more) {
    const { spent_before, memo, reports } = this.#state;
    const units = this.protocol.longitudinal ? memo.length : reports;
    return spent_before + this.protocol.spentBy(units + more);
  }

  /** Most that `loss` can become without another `reset`. */
  get cap() {
    return this.#state.spent_before + this.protocol.cap;
  }

  get limit() {
    return this.#state.limit;
  }

  /** Replace the hard limit on `loss`; null takes it away. */
  setLimit(limit) {
    if (limit !== null) real(this.protocol.loss)("limit", limit);
    this.#state.limit = limit;
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
    this.#begin(null, { spent, answered: wait ? answered : undefined });
    return forgotten(spent, this.protocol.cap);
  }

  // -- persistence

  /** The whole state, secrets included, as text that Python's `Client.load` reads too. */
  async save() {
    return canonical(await this.plain());
  }

  /** The same, ready for `canonical`. */
  async plain() {
    return { ...this.#state, checksum: await sha256(canonical(this.#state)) };
  }

  /** The client that `save` wrote; it goes on exactly where that one was. */
  static load(text, options) {
    return sound(() => Client.restore(parse(text), options));
  }

  /** The client of a state that is parsed already. */
  static async restore(plain, { protocol, rng } = {}) {
    const isKnown = plain?.type === TYPE && plain.version === VERSION;
    must(isKnown, UNKNOWN, StateError);
    const client = new Client(new Protocol(plain.protocol), { limit: plain.limit });
    client.#take(plain);
    must((await client.plain()).checksum === plain.checksum);
    const isFor = !protocol || canonical(protocol.spec) === canonical(client.protocol.spec);
    must(isFor, "state must be of the protocol", StateError);
    client.#rng = rng ?? client.#rng;
    return client;
  }

  /** Become what was written, if a client can be that. */
  #take(plain) {
    const { longitudinal, encoding, spec } = this.protocol;
    const { isKey, isAnswer, memoSymbols, memoCells } = encoding;
    const state = this.#state;
    for (const name of Object.keys(state)) state[name] = plain[name];
    const { key, memo, sent, table, answered, reports, spent_before, secret } = state;
    must(
      (longitudinal ? isKey(key) : key === null) &&
        isInteger(reports) &&
        areRounds(answered) &&
        isAmount(spent_before) &&
        unhex(secret).length === SECRET_BYTES &&
        (!spec.memo || (table.length === memoSymbols && table.every(isAnswer))) &&
        memo.length <= memoCells &&
        memo.flat().length === 2 * memo.length &&
        memo.every(
          ([x, kept], i) =>
            isInteger(x, memoSymbols - 1, i && memo[i - 1][0] + 1) &&
            isAnswer(kept) &&
            (table?.[x] ?? kept) === kept,
        ) &&
        sent.length <= Math.min(KEPT_ROUNDS, reports) &&
        sent.flat().length === 3 * sent.length &&
        new Set(this.sentRounds).size === sent.length &&
        sent.every(
          ([round, key, y]) => isInteger(round) && this.hasAnswered(round) && isKey(key) && isAnswer(y),
        ),
    );
  }
}

/** What a user is told of a reset or a withdrawal. */
export const deleted = (spent) =>
  `Key, memo and reports are deleted. What was sent stays counted and ${spent} spent so far stays spent`;

export const forgotten = (spent, cap) =>
  `${deleted(`the ${spent}`)}; new answers can spend ${cap} on top of it.`;
