/**
 * One user's device on the network: consent, enrolment, a queue that survives anything.
 *
 * No state is in memory alone: each call reads the state, computes the
 * next one, has it written, and only then tells or sends of it.
 */

import { detailOf } from "./answer.js";
import { Campaign } from "./campaign.js";
import { round as checkRound, tried } from "./check.js";
import { Client, again, deleted, forgotten } from "./client.js";
import { CampaignError, StateError, Unreachable, must } from "./errors.js";
import { afford, bound, checkLimit, claimOf, covers } from "./limit.js";
import { encode } from "./message.js";
import { byNumber, sum } from "./number.js";
import { SILENCED, isOptedOut, isSilenced } from "./optout.js";
import { outbox } from "./outbox.js";
import { post } from "./post.js";
import { previewOf } from "./preview.js";
import { agreed, assigned, committedOf, fingerprintOf, haveNames, ledgerAfter, lossOf, only, reader, remainsOf, sameIn, textOf } from "./state.js";

/** So many answers in a row that settle nothing: what answers is no collector that works. */
const FRUITLESS = 3;
/** States of a campaign, at its collector, that has ended. */
const OVER = ["closed", "archived", "deleting", "deleted"];
/** Reports of one campaign that wait to be sent; beyond it the oldest is dropped. */
const MOST_QUEUED = 1000;

/** The reports of one user, for one campaign or several under one agreement, in one storage. */
export class Sender {
  #storage;
  #stateOf = reader();
  #clock;
  #post;
  #outbox;
  #withdrawals = 0;

  /**
   * @param storage where the state is: `indexedDbStorage`, `fileStorage`, `memoryStorage`
   * @param {object} [options]
   * @param {() => number} [options.clock] Unix seconds
   * @param {object} [options.patience] see `post`
   */
  constructor(storage, { clock = () => Date.now() / 1000, ...patience } = {}) {
    this.#storage = storage;
    this.#clock = clock;
    this.#post = post({ clock, ...patience });
    this.#outbox = outbox({
      storage,
      stateOf: this.#stateOf,
      post: this.#post,
      goesOn: (campaign) => this.#goesOn(campaign) && !isSilenced(),
      settle: (reports) => this.#settle(reports),
    });
  }

  /**
   * What is known: consent, loss and limit of all campaigns together, and for each in `campaigns`
   * its campaign and loss, the rounds that were answered, and those that wait to be sent. `optedOut` is true
   * where the browser or the environment says that its user wants none of this: then ask for no consent.
   */
  async status() {
    const state = await this.#read();
    const { limit, enrolments } = state;
    const campaigns = enrolments.map(({ campaign, client, queue }) => {
      return { campaign, loss: client.loss, answered: client.sentRounds, waiting: queue.map(roundOf) };
    });
    return { consent: enrolments.length > 0, optedOut: isOptedOut(), loss: lossOf(state), limit, campaigns };
  }

  /**
   * Record the user's consent to one campaign, or to several at once, and enrol.
   *
   * @param {string | string[]} url each has a fingerprint, which pins its campaign
   * @param {object} [options]
   * @param {string | Record<string, string>} [options.token] the submit token of the campaigns, or one
   *   for each address that has one
   * @param {number} [options.limit] hard limit on what they spend together, and was spent with this
   *   storage before: it must cover all that can ever be spent, whatever the values; agreeing again with
   *   one replaces it
   * @param {boolean} [options.wait] after a withdrawal, whether to wait for rounds that were not
   *   answered yet; if not, a round that is answered again counts this user twice. Panels always wait
   * @returns {Promise<Campaign | null>} the first one; null, with nothing stored or sent, where DO_NOT_TRACK is
   *   set, or the browser says that its user wants none of this, and had not agreed before
   * @throws {StateError} if the user withdraws before it is stored
   */
  async agree(url, { token = null, limit = null, wait = true } = {}) {
    const urls = [url].flat();
    const wanted = new Set(urls.map(fingerprintOf));
    must(wanted.size && wanted.size === urls.length, "url must be one campaign, or several different ones; name each once");
    if (isSilenced()) return null;
    const withdrawals = this.#withdrawals;
    const known = await this.#read();
    const isKnown = known.enrolments.length;
    if (!isKnown && isOptedOut()) return null;
    const joined = isKnown || (await this.#ask(urls, token, limit, known));
    return this.#change(async (state) => {
      const isNew = !state.enrolments.length;
      if (isNew) {
        // A collector may be slow: the user's last word counts, here and in other tabs.
        const isLast = withdrawals === this.#withdrawals && (await textOf(known)) === (await textOf(state));
        must(isLast, "consent must be given anew; ask the user", StateError);
        state.enrolments = joined.map((one) => enrolled(one, state.answered, wait));
      }
      const { enrolments } = state;
      must(
        enrolments.length === wanted.size &&
          enrolments.every(({ campaign }) => wanted.has(campaign.fingerprint)),
        "campaigns must be those that the user agreed to; withdraw first to agree to others",
        CampaignError,
      );
      if (isNew || limit !== null) agreeTo(limit, state);
      return enrolments[0].campaign;
    });
  }

  /** What collectors give of each campaign; nothing is asked for that the limit does not cover. */
  async #ask(urls, tokens, limit, { committed }) {
    const joined = [];
    for (const url of urls) {
      const token = typeof tokens === "string" ? tokens : (tokens?.[url] ?? null);
      const document = await this.#post.ask(`${url}/document`, { token });
      must(document.status === 200, `collector must know the campaign: ${detailOf(document)}`, CampaignError);
      const campaign = await Campaign.read(document.text, fingerprintOf(url));
      // By its end date, or because its collector has closed it.
      const goesOn = this.#goesOn(campaign) && !OVER.includes(await this.#lifeOf({ url, token }));
      must(goesOn, "campaign must not have ended; ask for another", CampaignError);
      joined.push({ url, token, ticket: null, campaign });
    }
    must(haveNames(joined), "campaigns must have different names under one agreement; use a storage for each", CampaignError);
    const protocols = joined.map(({ campaign }) => campaign.protocol);
    checkLimit(limit, committed, protocols.map(claimOf), protocols[1] ? undefined : protocols[0]);
    for (const one of joined) {
      if (one.campaign.keys === "drawn") continue;
      const answer = await this.#post.ask(`${one.url}/keys`, { token: one.token, body: "" });
      const own = answer.status === 200 && assigned(one.campaign, answer.json);
      must(own, `collector must assign a key: ${detailOf(answer)}`, CampaignError);
      Object.assign(one, own);
    }
    return joined;
  }

  /**
   * Have an opt-out counted, of a user who was asked and wants no part: one request, which names nobody and is
   * never repeated. It shows an address on the network, as every request does.
   *
   * @param {string} url of the campaign
   * @param {object} [options]
   * @param {string} [options.token] its submit token, if it has one
   * @returns {Promise<boolean>} whether it was counted; false, with nothing sent, where the browser or DO_NOT_TRACK
   *   says that its user wants none of this
   */
  async decline(url, { token = null } = {}) {
    fingerprintOf(url);
    return !isOptedOut() && this.#post.decline(`${url}/opt-outs`, token);
  }

  /**
   * End the consent: delete keys, memos and queues. What stays is how much was spent and which
   * rounds were answered.
   */
  async withdraw() {
    this.#withdrawals += 1;
    let lost = "";
    const mend = (text) => {
      // Even a state that nobody can read is deleted; what was spent before stays counted, if that can be read.
      lost = "; what this damaged state spent is not known";
      return remainsOf(text);
    };
    const spent = await this.#change((state) => Object.assign(state, ledgerAfter(state)).spent, mend);
    return (
      `${deleted(spent)}${lost}; nothing more is reported. If you agree again, new answers are drawn on top of ` +
      `it. ${again(true)}`
    );
  }

  /**
   * Sanitise the user's value for a round and queue the report; nothing is sent yet.
   *
   * @param value a label of the campaign, or, where it asks for a range, a number in it
   * @param {object} [options]
   * @param {number} [options.round] by default the one that the clock says
   * @returns {Promise<number | null>} the round; one that was answered stays as it was. null if it is none of
   *   this user's, where a campaign asks each in one round of `every`, or once the collector has answered that the
   *   campaign is paused or has ended, or its end date has passed, or DO_NOT_TRACK is set: nothing is drawn,
   *   stored or sent
   * @throws {BudgetError} if the limit leaves no more reports of one-round protocols, or does not cover all that
   *   can be spent, in a state of release 0.2.0; never because of the value
   */
  report(value, options) {
    return this.#change(async (state) => {
      const { name } = only(state).campaign;
      return (await this.#answer(state, { [name]: value }, options))[name];
    });
  }

  /**
   * As `report`, for several campaigns of one agreement: all are queued, or none is.
   *
   * @param {Record<string, unknown>} values by name of the campaign
   * @returns {Promise<Record<string, number | null>>} the rounds
   */
  reportAll(values, options) {
    return this.#change((state) => this.#answer(state, values, options));
  }

  async #answer(state, values, { round } = {}) {
    const rounds = {};
    const enrolments = agreed(state);
    for (const [name, value] of Object.entries(values)) {
      const enrolment = enrolments.find(({ campaign }) => campaign.name === name);
      must(enrolment, "values must be for the campaigns that the user agreed to, by their names");
      const { campaign, client, ticket, queue } = enrolment;
      const now = round ?? campaign.roundAt(Number(this.#clock()));
      must(now === round || now >= 0, "campaign must have begun; report later", StateError);
      checkRound("round", now);
      const index = campaign.index(value);
      rounds[name] = this.#whyNot(enrolment, now) ? null : now;
      if (rounds[name] === null || client.hasAnswered(now)) continue;
      // It depends on no value, so that silence says nothing.
      afford(state.limit, committedOf(state) + client.protocol.perReport);
      const report = client.report(index, now);
      const message = encode(campaign, report, { round: now, reporter: await client.reporter(now), ticket });
      // Of many that wait the oldest ones are late first. What they spent stays spent.
      enrolment.queue = [...queue.slice(1 - MOST_QUEUED), [now, message]].sort(byNumber);
    }
    return rounds;
  }

  /** Code for why this user does not answer a round, empty if they do: never because of the value. */
  #whyNot({ campaign, client, halted }, round) {
    if (isSilenced()) return "do-not-track";
    if (!client) return "not-agreed";
    if (halted) return halted;
    if (!this.#goesOn(campaign, round)) return "expired";
    return client.isDue(round) ? "" : "not-due";
  }

  /**
   * The exact bytes of a report; nothing is drawn, stored, sent or asked. `explainPreview` says what they mean.
   *
   * @param {Campaign} [campaign] by default the only one that the user agreed to; needs no consent
   * @param {object} [options]
   * @param {number} [options.round] by default the one that the clock says, or the first one
   * @returns {Promise<object>} `message`; its `kind` is "queued", the report that waits; "answered", that of a round
   *   that has left the queue; or "example", of a client that is thrown away and a value taken at random, which
   *   says nothing of the user; `reason` is a code for why nothing is drawn as things are
   */
  async preview(campaign, { round } = {}) {
    const state = await this.#read();
    const { fingerprint } = (campaign ??= only(state).campaign);
    const now = checkRound("round", round ?? Math.max(0, campaign.roundAt(Number(this.#clock()))));
    const enrolment = state.enrolments.find((one) => one.campaign.fingerprint === fingerprint) ?? {};
    const isCovered = covers(state.limit, committedOf(state) + campaign.protocol.perReport);
    return previewOf(enrolment, campaign, now, this.#whyNot(enrolment, now) || (isCovered ? "" : "limit"));
  }

  /**
   * Send the queue, oldest first; what cannot be settled now stays. Once the collector has answered that the
   * campaign is paused or has ended all that waits is dropped; a paused one is asked about each time. Where
   * DO_NOT_TRACK is set nothing is sent, and all stays.
   */
  async deliver() {
    return this.#deliver(only(await this.#read()));
  }

  /** As `deliver`, for each campaign of the agreement, by name. */
  async deliverAll() {
    const outcomes = {};
    for (const enrolment of agreed(await this.#read())) {
      outcomes[enrolment.campaign.name] = await this.#deliver(enrolment);
    }
    return outcomes;
  }

  async #deliver(enrolment) {
    const isSilent = isSilenced();
    const outcome = { sent: [], refused: {}, reason: isSilent ? SILENCED : "" };
    let fruitless = 0;
    const isOver = !isSilent && !this.#goesOn(enrolment.campaign);
    if (isOver) {
      // Not noted: a clock that was ahead may be set right.
      for (const one of await this.#settle([{ enrolment, isOver }])) outcome.refused[one] = "the campaign has ended";
    } else if (!isSilent && enrolment.halted === "paused") await this.#askOn(enrolment);
    for (const [round, message] of isSilent || isOver ? [] : enrolment.queue) {
      const begin = (request) => this.#whileQueued(enrolment, message, request);
      const { settled, isCounted, halted, detail, stop } = await this.#post.send(enrolment, message, begin);
      if (settled) {
        const dropped = await this.#settle([{ enrolment, message, halted }]);
        if (isCounted) outcome.sent.push(round);
        else for (const one of [round, ...dropped]) outcome.refused[one] = detail;
        fruitless = 0;
      } else {
        // One report that settles nothing must not hold up the others for ever.
        outcome.reason ||= detail;
        fruitless += 1;
      }
      if (stop || halted || fruitless === FRUITLESS) break;
    }
    // Another tab may have another answer: the stored state decides.
    const { queue = [], halted = "open" } = sameIn(await this.#read(), enrolment);
    outcome.waiting = queue.map(roundOf);
    outcome.campaign = isOver ? "ended" : halted;
    if (!outcome.waiting.length) outcome.reason = "";
    return outcome;
  }

  /** Whether the end date of a campaign leaves this moment, and a round, to be answered. */
  #goesOn = (campaign, round = 0) => campaign.takes(round, Number(this.#clock()));

  async #lifeOf(one) {
    const { status, text } = await this.#post.ask(one.url, one);
    return status === 200 && tried(() => JSON.parse(text).state);
  }

  /** Ask whether a paused campaign goes on, or has ended meanwhile; no answer changes nothing. */
  async #askOn(enrolment) {
    const life = await this.#lifeOf(enrolment).catch(() => {});
    await this.#change((state) => {
      const one = sameIn(state, enrolment);
      if (one.halted !== "paused") return;
      if (life === "open") delete one.halted;
      else if (OVER.includes(life)) one.halted = "ended";
    });
  }

  /**
   * Begin a request about a report that is queued, while nobody can delete it; its answer is not waited
   * for meanwhile.
   */
  async #whileQueued(enrolment, message, request) {
    let answer;
    await this.#storage.change(async (text) => {
      if (sameIn(await this.#stateOf(text), enrolment).queue?.some(([, one]) => one === message)) answer = request();
    });
    // Another tab may have settled it, or the user may have withdrawn.
    must(answer, "queue must stay as it was read, another page has changed it; deliver again", Unreachable);
    return answer;
  }

  /**
   * Take reports off their queues that the collector has settled, and all that waits for a campaign that takes
   * no reports; where they are there no more, nothing is changed. Gives the rounds that are dropped so.
   */
  #settle(reports) {
    return this.#change((state) => {
      const dropped = [];
      for (const { enrolment, message, halted, isOver } of reports) {
        const one = sameIn(state, enrolment);
        const left = one.queue?.filter(([, text]) => text !== message);
        // What a late answer says of a deleted report is older than all that waits now.
        if (!left || (!isOver && left.length === one.queue.length)) continue;
        one.queue = left;
        // An end is final, even if a pause is reported later.
        if (!isOver && (!halted || one.halted === "ended")) continue;
        dropped.push(...one.queue.map(roundOf));
        one.queue = [];
        if (halted) one.halted = halted;
      }
      return dropped;
    });
  }

  /**
   * Send what is queued when the page goes away, in one request for each collector that outlives the page.
   *
   * What became of it may not be known then, so the reports stay queued and are sent again later, byte
   * for byte: the collector counts each once. What another tab has deleted is never sent.
   *
   * @returns {() => void} ends it
   */
  deliverOnHide(page = globalThis) {
    const { open, close, leave } = this.#outbox;
    const change = () => (page.document.visibilityState === "hidden" ? leave() : open());
    // Its signal ends all.
    const listening = new AbortController();
    page.addEventListener("pagehide", leave, listening);
    page.addEventListener("pageshow", change, listening);
    page.document.addEventListener("visibilitychange", change, listening);
    change();
    return () => {
      listening.abort();
      close();
    };
  }

  /**
   * Forget keys, memos and queues, and start as a new user; says what that costs.
   *
   * @param {object} [options]
   * @param {boolean} [options.wait] whether to wait for rounds that were not answered yet; if not, a
   *   round that is answered again counts this user twice. Panels always wait
   */
  reset({ wait = true } = {}) {
    return this.#change((state) => {
      const enrolments = agreed(state);
      const drawn = enrolments.every(({ campaign }) => campaign.keys === "drawn");
      must(drawn, "keys must be assigned anew by the collector; withdraw and agree again", StateError);
      const protocols = enrolments.map(({ campaign }) => campaign.protocol);
      afford(state.limit, sum(protocols.map(claimOf), committedOf(state)));
      // What is forgotten here a later start that waits has to know.
      const { answered } = ledgerAfter(state);
      state.answered = answered;
      state.enrolments = enrolments.map((one) => enrolled(one, answered, wait, one.client.account));
      wait ||= enrolments.every(({ client }) => client.every > 1);
      return forgotten(lossOf(state), sum(protocols.map(({ cap }) => cap)), wait);
    });
  }

  async #read() {
    return this.#stateOf(await this.#storage.read());
  }

  /** Compute the next state, have it written, and only then tell of it. `mend` is for one that is damaged. */
  async #change(step, mend) {
    let state;
    let result;
    await this.#storage.change(async (text) => {
      state = await this.#stateOf(text).catch((error) => {
        if (!mend) throw error;
        return mend(text);
      });
      result = await step(state);
      const made = await textOf(state);
      return made === text ? undefined : made;
    });
    must(state, "storage must call what its method change is given; see Storage in index.d.ts", StateError);
    return result;
  }
}

const roundOf = ([round]) => round;

/** A new enrolment, which goes on in its panel and may leave out rounds that were answered. */
function enrolled({ key, ...one }, known, wait, before) {
  const { protocol, fingerprint, schedule: { every } } = one.campaign;
  const answered = known[fingerprint];
  // It was answered itself, and is no gap that was closed.
  const last = answered?.at(-1)?.[1];
  // A window of a panel holds one report, whoever asks for another.
  const account = { residue: last && last % every, ...before, answered: wait || every > 1 ? answered : undefined };
  return { ...one, client: new Client(protocol, { key, account, every }), queue: [] };
}

/** Take a limit for all enrolments together, as the user asks. */
function agreeTo(limit, state) {
  const clients = state.enrolments.map(({ client }) => client);
  // From here on what was spent stands for what is not known.
  const committed = state.committed || state.spent;
  checkLimit(limit, sum(clients.map(({ committedBefore }) => committedBefore), committed), clients.map(({ claim }) => claim));
  for (const client of clients) client.setLimit(null);
  Object.assign(state, { limit: bound(limit), committed });
}
