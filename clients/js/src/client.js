/** One user's device: key, memo, what was sent for which round. The only thing that sees values. */

import { given, integer, isAble, isAmount, isInteger, isProtocol, round as checkRound, tried } from "./check.js";
import { DomainError, StateError, UNKNOWN, must, sound } from "./errors.js";
import { canonical, parse, sealed, unsealed } from "./json.js";
import { afford, bound, checkLimit, claimOf, committedBefore, covers } from "./limit.js";
import { amountText, byNumber, digest, hex, unhex } from "./number.js";
import { Protocol } from "./protocol.js";
import { SecureRng } from "./rng.js";
import { areRounds, including } from "./rounds.js";

const TYPE = "loloha-client";
/** Of a state that says what was committed before, and of one where what was spent before stands for it. */
const [COMMITTED_VERSION, VERSION] = [3, 2];
const SECRET_BYTES = 32;

/** How many answered rounds a client remembers. */
export const KEPT_ROUNDS = 64;

/** The secret state of one user. Do not copy it: a second copy would draw its own answers. */
export class Client {
  #rng;
  /** What `save` writes, but for its checksum, and for what was committed before. */
  #state;
  /** What the user committed before this key, whatever the values were; NaN if it is not known. */
  #committed;

  /**
   * @param {Protocol} protocol
   * @param {object} [options]
   * @param options.key what the server assigned; by default drawn here
   * @param {number} [options.limit] hard limit on `loss`; it must cover the most that can ever be spent
   * @param options.rng for simulations and tests only
   * @param {object} [options.account] `account` of the same user's earlier client
   * @param {number} [options.every] in how many rounds it reports once: of the campaign's schedule
   */
  constructor(protocol, options) {
    const { key = null, limit = null, rng = new SecureRng(), account, every = 1 } = given("options", options);
    const { spent = 0, answered = [], committed = spent, residue } = given("account", account);
    must(isProtocol(protocol), "protocol must be a Protocol");
    must(isAble(rng, "bernoulli", "below"), "rng must have bernoulli and below");
    const isPast = isAmount(spent) && typeof committed === "number" && tried(areRounds, answered);
    must(isPast, "account must be of an earlier client");
    integer(1, 2 ** 24)("every", every);
    this.protocol = protocol;
    this.#rng = rng;
    const isKey = key === null || (protocol.longitudinal && protocol.encoding.isKey(key));
    must(isKey, "key must be one of the protocol's (not shown); ask the collector for one");
    checkLimit(limit, committed, [claimOf(protocol)], protocol);
    integer(0, every - 1)("residue", residue ?? 0);
    this.#begin(key, { spent, answered, committed, residue }, every);
    this.#state.limit = bound(limit);
  }

  /** Start with an empty memo and, unless they are given, a new key and residue. */
  #begin(key, { spent, answered = [], committed, residue }, every) {
    const { spec, longitudinal, encoding } = this.protocol;
    this.#committed = committed;
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
      ...(every > 1 && { panel: [every, residue ?? this.#rng.below(every)] }),
    };
  }

  /**
   * The sanitised report {key, y} of `value`, 0..k-1, for one round.
   *
   * A round is answered once: asking again gives the same report, whatever the value.
   */
  report(value, round) {
    const isIndex = isInteger(value, this.protocol.k - 1);
    must(isIndex, "value must be the index of a label (not shown); use Campaign.index", DomainError);
    checkRound("round", round);
    must(this.isDue(round), "round must be due, see isDue", StateError);
    const state = this.#state;
    let sent = state.sent.find(([one]) => one === round);
    if (!sent) {
      must(!this.hasAnswered(round), "round must be one that was not answered; its report is forgotten", StateError);
      // Summed up only where there is a limit: this runs in every report.
      if (state.limit !== null) afford(state.limit, this.committed + this.protocol.perReport);
      sent = [round, ...this.#answer(value)];
      if (state.sent.push(sent) > KEPT_ROUNDS) state.sent.shift();
      state.reports += 1;
      state.answered = including(state.answered, [[round, round]]);
    }
    const [, key, y] = sent;
    // They share nothing with what is remembered.
    return { key: Array.isArray(key) ? [...key] : key, y: this.protocol.encoding.answerFrom(y) };
  }

  /** Key and answer: drawn afresh from the permanent answer to the memo symbol, or, of one-round protocols, alone. */
  #answer(value) {
    const { longitudinal, encoding, first, second } = this.protocol;
    const { memo, table } = this.#state;
    const draw = (from, thresholds) => encoding.answerPlain(encoding.draw(this.#rng, from, thresholds));
    let { key } = this.#state;
    let x = longitudinal && encoding.memoIndex(key, value);
    let [, answer] = memo.find(([one]) => one === x) ?? [];
    if (answer === undefined) {
      if (!longitudinal) {
        key = encoding.drawKey(this.#rng);
        x = encoding.memoIndex(key, value);
      }
      answer = table ? table[x] : draw(encoding.certain(x), first);
      if (longitudinal) {
        memo.push([x, answer]);
        memo.sort(byNumber);
      }
    }
    return [encoding.sent(key), second ? draw(encoding.answerFrom(answer), second) : answer];
  }

  /** In how many rounds it reports once. */
  get every() {
    return this.#state.panel?.[0] ?? 1;
  }

  /** Whether it reports in a round; one that was missed is not made up for. */
  isDue(round) {
    return checkRound("round", round) % this.every === (this.#state.panel?.[1] ?? 0);
  }

  /** Whether a round was answered, or counts as such; it is never answered again. */
  hasAnswered(round) {
    checkRound("round", round);
    return this.#state.answered.some(([first, last]) => first <= round && round <= last);
  }

  /** The newest rounds that were answered, in the order of answering. */
  get sentRounds() {
    return this.#state.sent.map(([round]) => round);
  }

  /** What was spent and committed and which rounds were answered, for a later client of this user. */
  get account() {
    const { answered, panel } = this.#state;
    return { spent: this.loss, answered, committed: this.committedBefore + this.#own, residue: panel?.[1] };
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

  /** What the user has committed with this client; it depends on no value. NaN if it is not known. */
  get committed() {
    return this.#committed + this.#own;
  }

  /** What was committed before; where it is not known, what was spent stands for it. */
  get committedBefore() {
    return this.#committed || this.#state.spent_before;
  }

  /** What the key of this client commits: all that it can spend, or, of one-round protocols, what its reports do. */
  get #own() {
    const { longitudinal, cap, loss } = this.protocol;
    return longitudinal ? cap : this.#state.reports * loss;
  }

  /** What was spent before. */
  get spentBefore() {
    return this.#state.spent_before;
  }

  /** What a limit has to cover of it, one report at least. */
  get claim() {
    return this.#own || this.protocol.loss;
  }

  /** Replace the hard limit on `loss`, as the user asks; null takes it away. */
  setLimit(limit) {
    checkLimit(limit, this.committedBefore, [this.claim], this.protocol);
    this.#state.limit = bound(limit);
    this.#committed = this.committedBefore;
  }

  /**
   * Forget key, memo and sent reports, and start as a new user; what was spent stays spent.
   *
   * @param {object} [options]
   * @param {boolean} [options.wait] whether to wait for rounds that were not answered yet; if not, a
   *   round that was counted and is answered again counts this user twice. Panels always wait
   */
  reset(options) {
    let { wait = true } = given("options", options);
    wait ||= this.every > 1;
    const { spent, answered, committed } = this.account;
    afford(this.limit, this.committed + claimOf(this.protocol));
    this.#begin(null, { spent, committed, answered: wait ? answered : undefined });
    return forgotten(spent, this.protocol.cap, wait);
  }

  // -- persistence

  /** The whole state, secrets included, as text that Python's `Client.load` reads too. */
  async save() {
    return canonical(await this.plain());
  }

  /** The same, ready for `canonical`. */
  async plain() {
    // Release 0.2.0 would go by what was spent: it has to refuse what says more.
    const isExplicit = !Object.is(this.#committed, this.#implied);
    const commitment = isExplicit && { version: COMMITTED_VERSION, committed_before: this.#committed };
    return sealed({ ...this.#state, ...commitment });
  }

  /** What a state that does not say it, as those of release 0.2.0, committed before. */
  get #implied() {
    const { limit, spent_before } = this.#state;
    return committedBefore(limit, this.protocol.longitudinal && spent_before > 0, spent_before);
  }

  /** The client that `save` wrote; it goes on exactly where that one was. */
  static load(text, options) {
    return sound(async () => {
      const plain = parse(text);
      const client = await Client.restore(plain, options);
      // What would be written otherwise, with a member less for example, this release cannot keep.
      must((await client.save()) === canonical(plain), UNKNOWN, StateError);
      return client;
    });
  }

  /** The client of a state that is parsed already; whoever reads it checks that it is written again as it was. */
  static async restore(plain, { protocol, rng } = {}) {
    const isKnown = plain?.type === TYPE && [VERSION, COMMITTED_VERSION].includes(plain.version);
    must(isKnown, UNKNOWN, StateError);
    const state = await unsealed(plain);
    const client = new Client(new Protocol(state.protocol), { every: state.panel?.[0] });
    client.#take(state);
    const isFor = !protocol || canonical(protocol.spec) === canonical(client.protocol.spec);
    must(isFor, "state must be for the given protocol; a changed protocol needs a new client", StateError);
    client.#rng = rng ?? client.#rng;
    return client;
  }

  /** Become what was written, if a client can be that. */
  #take({ committed_before, ...plain }) {
    const { longitudinal, encoding, spec } = this.protocol;
    const { isKey, isAnswer, memoSymbols, memoCells } = encoding;
    const state = this.#state;
    for (const name of Object.keys(state)) state[name] = plain[name];
    state.version = VERSION;
    const { key, memo, sent, table, panel, answered, reports, limit, spent_before, secret } = state;
    this.#committed = committed_before || this.#implied;
    const own = canonical(encoding.sent(key));
    must(
      (longitudinal ? isKey(key) : key === null) &&
        isInteger(reports) &&
        areRounds(answered) &&
        isAmount(spent_before) &&
        isAmount(this.#committed || 0) &&
        (limit === null || (isAmount(limit) && covers(limit, this.protocol.loss))) &&
        unhex(secret).length === SECRET_BYTES &&
        (!panel || (panel.length === 2 && isInteger(panel[1], panel[0] - 1))) &&
        (!spec.memo || (table.length === memoSymbols && table.every(isAnswer))) &&
        memo.length <= memoCells &&
        memo.flat().length === 2 * memo.length &&
        memo.every(
          ([x, answer], i) =>
            isInteger(x, memoSymbols - 1, i && memo[i - 1][0] + 1) &&
            isAnswer(answer) &&
            (table?.[x] ?? answer) === answer,
        ) &&
        sent.length <= Math.min(KEPT_ROUNDS, reports) &&
        sent.flat().length === 3 * sent.length &&
        new Set(this.sentRounds).size === sent.length &&
        sent.every(
          ([round, shown, y]) =>
            isInteger(round) &&
            this.isDue(round) &&
            this.hasAnswered(round) &&
            (longitudinal ? canonical(shown) === own : isKey(shown)) &&
            isAnswer(y),
        ),
    );
  }
}

/** The sentence for a user about a reset or a withdrawal. */
export const deleted = (spent) =>
  `Key, memo and reports are deleted. What was sent stays counted and the ${amountText(spent)} spent so far stays spent`;

export const again = (wait) =>
  wait
    ? "Rounds that were answered are not answered again."
    : "A round that is answered again counts you twice.";

export const forgotten = (spent, cap, wait) => {
  const most = Number.isFinite(cap) ? `up to ${amountText(cap)}` : "more";
  return `${deleted(spent)}; new reports can spend ${most} on top of it. ${again(wait)}`;
};
