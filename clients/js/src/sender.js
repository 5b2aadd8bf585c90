/** One user's device on the network: consent, enrolment, a queue that survives anything. */

import { detailOf } from "./answer.js";
import { Campaign } from "./campaign.js";
import { given, isAble, isCampaign, real, round as checkRound, tried } from "./check.js";
import { again, deleted, forgotten } from "./client.js";
import { courier, lifeOf, waitingIn } from "./delivery.js";
import { agreeTo, enrolled } from "./enrolment.js";
import { CampaignError, StateError, must } from "./errors.js";
import { stateStore } from "./store.js";
import { afford, checkLimit, claimOf, covers } from "./limit.js";
import { encode } from "./message.js";
import { byNumber, sum } from "./number.js";
import { isOptedOut, isSilenced } from "./optout.js";
import { outbox } from "./outbox.js";
import { post } from "./post.js";
import { previewOf } from "./preview.js";
import { addressOf, agreed, assigned, committedOf, fingerprintOf, haveNames, ledgerAfter, lossOf, only, remainsOf, textOf } from "./state.js";

/** Reports of one campaign that wait to be sent; beyond it the oldest is dropped. */
const MOST_QUEUED = 1000;
/** Unix seconds as a clock can show them. */
const moment = real(-1e15, 1e15);
const LISTEN = "addEventListener";

/** The reports of one user, for one campaign or several under one agreement, in one storage. */
export class Sender {
  #store;
  #clock;
  #post;
  #deliver;
  #outbox;
  #withdrawals = 0;

  /**
   * @param storage where the state is: `indexedDbStorage`, `fileStorage`, `memoryStorage`
   * @param {object} [options]
   * @param {() => number} [options.clock] Unix seconds
   * @param {object} [options.patience] see `post`
   */
  constructor(storage, options) {
    const { clock = () => Date.now() / 1000, ...patience } = given("options", options);
    must(isAble(storage, "read", "change"), "storage must have read and change; use indexedDbStorage, fileStorage or memoryStorage");
    this.#clock = clock;
    this.#store = stateStore(storage);
    this.#post = post({ clock, ...patience });
    const parts = { storage, store: this.#store, post: this.#post, goesOn: this.#goesOn };
    this.#deliver = courier(parts);
    this.#outbox = outbox(parts);
  }

  /**
   * What is known: consent, loss and limit of all campaigns together, and for each in `campaigns`
   * its campaign and loss, the rounds that were answered, and those that wait to be sent. `optedOut` is true
   * where the browser or the environment says that its user wants none of this: then ask for no consent.
   */
  async status() {
    const state = await this.#store.read();
    const { limit, enrolments } = state;
    const campaigns = enrolments.map((one) => {
      const { campaign, client } = one;
      return { campaign, loss: client.loss, answered: client.sentRounds, waiting: waitingIn(one) };
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
  async agree(url, options) {
    const { token = null, limit = null, wait = true } = given("options", options);
    const urls = [url].flat();
    const wanted = new Set(urls.map(fingerprintOf));
    must(wanted.size && wanted.size === urls.length, "url must name campaigns, each once");
    if (isSilenced()) return null;
    const withdrawals = this.#withdrawals;
    const known = await this.#store.read();
    const isKnown = known.enrolments.length;
    if (!isKnown && isOptedOut()) return null;
    const joined = isKnown || (await this.#ask(urls, token, limit, known));
    return this.#store.change(async (state) => {
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
        "campaigns must be those that the user agreed to; withdraw first",
        CampaignError,
      );
      if (isNew || limit !== null) agreeTo(limit, state);
      return enrolments[0].campaign;
    });
  }

  /** What collectors give of each campaign; nothing is asked for that the limit does not cover. */
  async #ask(urls, tokens, limit, { committed }) {
    const joined = [];
    for (const one of urls) {
      const url = addressOf(one);
      const token = typeof tokens === "string" ? tokens : (given("token", tokens)[one] ?? null);
      const document = await this.#post.ask(`${url}/document`, { token });
      must(document.status === 200, `collector must know the campaign: ${detailOf(document)}`, CampaignError);
      const campaign = await Campaign.read(document.text, fingerprintOf(url));
      // By its end date, or because its collector has closed it.
      const goesOn = this.#goesOn(campaign) && (await lifeOf(this.#post, { url, token })) !== "ended";
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
  async decline(url, options) {
    const { token = null } = given("options", options);
    const address = addressOf(url);
    return !isOptedOut() && this.#post.decline(`${address}/opt-outs`, token);
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
    const spent = await this.#store.change((state) => Object.assign(state, ledgerAfter(state)).spent, mend);
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
    return this.#store.change(async (state) => {
      const rounds = await this.#answer(state, { [only(state).campaign.name]: value }, options);
      return Object.values(rounds)[0];
    });
  }

  /**
   * As `report`, for several campaigns of one agreement: all are queued, or none is.
   *
   * @param {Record<string, unknown>} values by name of the campaign
   * @returns {Promise<Record<string, number | null>>} the rounds
   */
  reportAll(values, options) {
    return this.#store.change((state) => this.#answer(state, values, options));
  }

  async #answer(state, plain, options) {
    const enrolments = agreed(state);
    const values = given("values", plain);
    const { round = null } = given("options", options);
    // All are checked before any is answered.
    const named = Object.keys(values).map((name) => enrolments.find(({ campaign }) => campaign.name === name));
    must(named.every(Boolean), "values must be for campaigns that the user agreed to, by name");
    const asked = named.map((enrolment) => {
      const { campaign } = enrolment;
      const index = campaign.index(values[campaign.name]);
      const number = this.#round(campaign, round);
      return [enrolment, index, this.#whyNot(enrolment, number) ? null : number];
    });
    for (const [enrolment, index, number] of asked) {
      const { campaign, client, ticket, queue } = enrolment;
      if (number === null || client.hasAnswered(number)) continue;
      // It depends on no value, so that silence says nothing.
      afford(state.limit, committedOf(state) + client.protocol.perReport);
      const report = client.report(index, number);
      const message = encode(campaign, report, { round: number, reporter: await client.reporter(number), ticket });
      // Of many that wait the oldest ones are late first. What they spent stays spent.
      enrolment.queue = [...queue.slice(1 - MOST_QUEUED), [number, message]].sort(byNumber);
    }
    // Whatever the names are.
    return Object.fromEntries(asked.map(([{ campaign }, , number]) => [campaign.name, number]));
  }

  /** The round that is asked for, or that the clock says. */
  #round(campaign, round) {
    if (round !== null) return checkRound("round", round);
    const now = campaign.roundAt(this.#now());
    must(now >= 0, "campaign must have begun; report later", StateError);
    return now;
  }

  #now = () => moment("clock", Number(this.#clock()));

  /** Whether the end date of a campaign leaves this moment, and a round, to be answered. */
  #goesOn = (campaign, round = 0) => campaign.takes(round, this.#now);

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
  async preview(campaign, options) {
    const { round } = given("options", options);
    const state = await this.#store.read();
    campaign ??= only(state).campaign;
    must(isCampaign(campaign), "campaign must be a Campaign; leave it out for the one that the user agreed to");
    const { fingerprint } = campaign;
    const now = checkRound("round", round ?? Math.max(0, campaign.roundAt(this.#now())));
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
    return this.#deliver(only(await this.#store.read()));
  }

  /** As `deliver`, for each campaign of the agreement, by name. */
  async deliverAll() {
    const outcomes = [];
    for (const enrolment of agreed(await this.#store.read())) {
      outcomes.push([enrolment.campaign.name, await this.#deliver(enrolment)]);
    }
    return Object.fromEntries(outcomes);
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
    const document = tried(() => page.document);
    must(isAble(page, LISTEN) && isAble(document, LISTEN), "page must have a document; elsewhere call deliver", StateError);
    const { open, close, leave } = this.#outbox;
    const change = () => (document.visibilityState === "hidden" ? leave() : open());
    // Its signal ends all.
    const listening = new AbortController();
    page.addEventListener("pagehide", leave, listening);
    page.addEventListener("pageshow", change, listening);
    document.addEventListener("visibilitychange", change, listening);
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
   * @param {boolean} [options.wait] see `agree`
   */
  async reset(options) {
    let { wait = true } = given("options", options);
    return this.#store.change((state) => {
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
}
