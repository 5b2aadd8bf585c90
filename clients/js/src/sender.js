/**
 * One user's device on the network: consent, enrolment, a queue that survives anything.
 *
 * Nothing is kept in memory that the storage does not hold: each call reads the state, computes the
 * next one, has it written, and only then tells or sends of it.
 */

import { Campaign } from "./campaign.js";
import { real, round as checkRound } from "./check.js";
import { Client, deleted, forgotten } from "./client.js";
import { ANOTHER, BudgetError, CampaignError, StateError, must } from "./errors.js";
import { encode } from "./message.js";
import { byNumber } from "./number.js";
import { post } from "./post.js";
import { including } from "./rounds.js";
import { assigned, fingerprintOf, lossOf, stateOf, sumOf, textOf } from "./state.js";

/** So many answers in a row that settle nothing: what answers is no collector that works. */
const FRUITLESS = 3;
/** Reports of one campaign that wait to be sent; beyond it the oldest is dropped. */
const MOST_QUEUED = 1000;

/** The reports of one user, for one campaign or several under one agreement, in one storage. */
export class Sender {
  #storage;
  #clock;
  #post;
  /** What may be sent when the page is hidden: enrolments that the storage holds. */
  #outbox = [];

  /**
   * @param storage where the state is: `indexedDbStorage`, `fileStorage`, `memoryStorage`
   * @param {object} [options]
   * @param {() => number} [options.clock] Unix seconds
   * @param {object} [options.patience] see `post`
   */
  constructor(storage, { clock = () => Date.now() / 1000, ...patience } = {}) {
    this.#storage = storage;
    this.#clock = clock;
    this.#post = post(patience);
  }

  /**
   * What is known: consent, loss and limit of all campaigns together, and of each `campaigns` entry
   * campaign, loss, rounds answered and waiting. Those of the first stand beside them.
   */
  async status() {
    const state = await this.#read();
    const { limit, enrolments } = state;
    const campaigns = enrolments.map(({ campaign, client, queue }) => {
      return { campaign, loss: client.loss, answered: client.sentRounds, waiting: queue.map(roundOf) };
    });
    const first = { campaign: null, answered: [], waiting: [], ...campaigns[0] };
    return { ...first, consent: enrolments.length > 0, loss: lossOf(state), limit, campaigns };
  }

  /**
   * Record the user's consent to one campaign, or to several at once, and enrol.
   *
   * @param {string | string[]} url each has a fingerprint, which pins its campaign
   * @param {object} [options]
   * @param {string | Record<string, string>} [options.token] the submit token of the campaigns, or one
   *   for each address that has one
   * @param {number} [options.limit] hard limit on what they spend together, and was spent with this
   *   storage before; agreeing again with one replaces it
   * @param {boolean} [options.wait] after a withdrawal, whether to wait for rounds that were not
   *   answered yet; if not, a round that is answered again counts this user twice
   * @returns {Promise<Campaign>} the first one
   */
  async agree(url, { token = null, limit = null, wait = false } = {}) {
    const urls = [url].flat();
    const wanted = new Set(urls.map(fingerprintOf));
    must(wanted.size && wanted.size === urls.length, "urls must differ");
    const known = await this.#read();
    const enrolled = known.enrolments.length ? [] : await this.#enrol(urls, token, known, wait);
    return this.#change((state) => {
      if (!state.enrolments.length) state.enrolments = enrolled;
      const { enrolments } = state;
      must(
        enrolments.length === wanted.size &&
          enrolments.every(({ campaign }) => wanted.has(campaign.fingerprint)),
        ANOTHER,
        CampaignError,
      );
      if (limit !== null) {
        const least = sumOf(enrolments, ({ protocol }) => protocol.loss);
        state.limit = real(least)("limit", limit);
      }
      return enrolments[0].campaign;
    });
  }

  async #enrol(urls, tokens, known, wait) {
    const enrolled = [];
    for (const url of urls) {
      const token = typeof tokens === "string" ? tokens : (tokens?.[url] ?? null);
      const document = await this.#post.ask(`${url}/document`, { token });
      must(document.status === 200, `collector must answer: ${document.detail}`, CampaignError);
      const campaign = await Campaign.read(document.text, fingerprintOf(url));
      let own = {};
      if (campaign.keys === "assigned") {
        const answer = await this.#post.ask(`${url}/keys`, { token, body: "" });
        own = answer.status === 200 && assigned(campaign, answer.json);
        must(own, `collector must answer with a key: ${answer.detail}`, CampaignError);
      }
      const { key, ticket = null } = own;
      const answered = wait ? known.answered[campaign.fingerprint] : undefined;
      const client = new Client(campaign.protocol, { key, account: { answered } });
      enrolled.push({ url, token, ticket, campaign, client, queue: [] });
    }
    const names = new Set(enrolled.map(({ campaign }) => campaign.name));
    must(names.size === urls.length, "names must differ", CampaignError);
    return enrolled;
  }

  /**
   * End the consent: delete keys, memos and queues. What stays is how much was spent and which
   * rounds were answered.
   */
  async withdraw() {
    let spent;
    await this.#change(
      (state) => {
        const { enrolments, answered } = state;
        for (const { campaign: { fingerprint }, client } of enrolments) {
          answered[fingerprint] = including(answered[fingerprint] ?? [], client.account.answered);
        }
        Object.assign(state, { spent: lossOf(state), enrolments: [] });
        spent ??= `the ${state.spent}`;
      },
      // Even a state that nobody can read is deleted.
      () => {
        spent = "what was";
        return stateOf(null);
      },
    );
    return (
      `${deleted(spent)}; nothing more is reported. If you agree again, new answers are drawn on ` +
      "top of it, and a round answered again counts you twice, unless you wait for the next one."
    );
  }

  /**
   * Sanitise the user's value for a round and queue the report; nothing is sent yet.
   *
   * @param value a label of the campaign, or, where it asks for a range, a number in it
   * @param {object} [options]
   * @param {number} [options.round] by default the one that the clock says
   * @returns {Promise<number | null>} the round, one that was answered stays as it was; null if the
   *   limit is reached
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
   * @param {Record<string, unknown>} values by name of the campaign; what is left of the limit goes
   *   to the first ones first
   */
  reportAll(values, options) {
    return this.#change((state) => this.#answer(state, values, options));
  }

  async #answer(state, values, { round } = {}) {
    const rounds = {};
    const enrolments = agreed(state);
    for (const [name, value] of Object.entries(values)) {
      const enrolment = enrolments.find(({ campaign }) => campaign.name === name);
      must(enrolment, ANOTHER);
      const { campaign, client, ticket, queue } = enrolment;
      const now = round ?? campaign.roundAt(Number(this.#clock()));
      must(now === round || now >= 0, "campaign must have begun; report later", StateError);
      rounds[name] = checkRound("round", now);
      const index = campaign.index(value);
      if (client.hasAnswered(now)) continue;
      // What the others leave of the limit.
      const left = (state.limit ?? Infinity) - (lossOf(state) - client.loss);
      try {
        const report = client.report(index, now, left);
        const message = encode(campaign, report, { round: now, reporter: await client.reporter(now), ticket });
        // Of many that wait the oldest ones are late first. What they spent stays spent.
        enrolment.queue = [...queue.slice(1 - MOST_QUEUED), [now, message]].sort(byNumber);
      } catch (error) {
        if (!(error instanceof BudgetError)) throw error;
        rounds[name] = null;
      }
    }
    return rounds;
  }

  /** Send the queue, oldest first; what cannot be settled now stays. */
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
    const outcome = { sent: [], refused: {}, reason: "" };
    let fruitless = 0;
    for (const [round, message] of enrolment.queue) {
      // Another tab may have sent it, or the user may have withdrawn.
      const waits = async () => queueOf(await this.#read(), enrolment).flat().includes(message);
      const { settled, isCounted, detail, stop } = await this.#post.send(enrolment, message, waits);
      if (settled) {
        await this.#settle(enrolment, message);
        if (isCounted) outcome.sent.push(round);
        else outcome.refused[round] = detail;
        fruitless = 0;
      } else {
        // One report that settles nothing must not hold up the others for ever.
        outcome.reason ||= detail;
        fruitless += 1;
      }
      if (stop || fruitless === FRUITLESS) break;
    }
    outcome.waiting = queueOf(await this.#read(), enrolment).map(roundOf);
    if (!outcome.waiting.length) outcome.reason = "";
    return outcome;
  }

  /** Take a report off the queue that the collector has settled. */
  #settle(enrolment, message) {
    return this.#change((state) => {
      // Where it is there no more, nothing is changed.
      const queue = queueOf(state, enrolment);
      queue.splice(0, Infinity, ...queue.filter(([, one]) => one !== message));
    });
  }

  /**
   * Send the queue when the page goes away, by requests that outlive it.
   *
   * What became of them is not known then, so the reports stay queued and are sent again later,
   * byte for byte: the collector counts each once.
   *
   * @returns {() => void} ends it
   */
  deliverOnHide(page = globalThis) {
    const gone = new Set();
    const leave = () => {
      for (const enrolment of this.#outbox) {
        for (const [, message] of enrolment.queue) {
          if (gone.has(message)) continue;
          gone.add(message);
          this.#post
            .send(enrolment, message, undefined, true)
            .then(({ settled }) => settled && this.#settle(enrolment, message))
            .catch(() => {})
            .finally(() => gone.delete(message));
        }
      }
    };
    const hidden = () => page.document.visibilityState === "hidden" && leave();
    // Its signal ends both.
    const listening = new AbortController();
    page.addEventListener("pagehide", leave, listening);
    page.document.addEventListener("visibilitychange", hidden, listening);
    this.status().catch(() => {});
    return () => listening.abort();
  }

  /** Forget keys, memos and queues, and start as a new user; says what that costs. */
  reset(options) {
    return this.#change((state) => {
      const enrolments = agreed(state);
      const drawn = enrolments.every(({ campaign }) => campaign.keys === "drawn");
      must(drawn, "keys must be assigned; withdraw, ask the user anew", StateError);
      for (const one of enrolments) {
        one.queue = [];
        one.client.reset(options);
      }
      const cap = sumOf(enrolments, ({ protocol }) => protocol.cap);
      return forgotten(lossOf(state), cap);
    });
  }

  async #read() {
    const state = await stateOf(await this.#storage.read());
    this.#outbox = state.enrolments;
    return state;
  }

  /** Compute the next state, have it written, and only then tell of it. `mend` is for one that is damaged. */
  async #change(step, mend) {
    let state;
    let told;
    await this.#storage.change(async (text) => {
      state = await stateOf(text).catch(mend);
      told = await step(state);
      const made = await textOf(state);
      return made === text ? undefined : made;
    });
    must(state, "storage must call next", StateError);
    this.#outbox = state.enrolments;
    return told;
  }
}

const roundOf = ([round]) => round;

/** What waits of the same enrolment in another state; nothing if it is there no more. */
const queueOf = ({ enrolments }, { url }) => enrolments.find((one) => one.url === url)?.queue ?? [];

function agreed({ enrolments }) {
  must(enrolments.length, ANOTHER, StateError);
  return enrolments;
}

function only(state) {
  const [enrolment, another] = agreed(state);
  must(!another, "campaign must be the only one; use reportAll, deliverAll", StateError);
  return enrolment;
}
