/**
 * One user's device on the network: consent, enrolment, a queue that survives anything.
 *
 * Nothing is kept in memory that the storage does not hold: each call reads the state, computes the
 * next one, has it written, and only then tells or sends of it.
 */

import * as check from "./check.js";
import { Campaign } from "./campaign.js";
import { Client } from "./client.js";
import { CampaignError, ParameterError, StateError, must } from "./errors.js";
import { Post } from "./post.js";
import { Enrolment, State, assigned, fingerprintOf } from "./state.js";

/** So many answers in a row that settle nothing: what answers is no collector that works. */
const FRUITLESS = 3;

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
   * @param {object} [options.patience] see `Post`
   */
  constructor(storage, { clock = () => Date.now() / 1000, ...patience } = {}) {
    this.#storage = storage;
    this.#clock = clock;
    this.#post = new Post(patience);
  }

  /**
   * What is known: consent, loss and limit of all campaigns together, and of each `campaigns` entry
   * campaign, loss, rounds answered and waiting. Those of the first stand beside them.
   */
  async status() {
    const state = await this.#read();
    const campaigns = state.enrolments.map(({ campaign, client, waiting }) => {
      return { campaign, loss: client.loss, answered: client.sentRounds, waiting };
    });
    const { campaign, answered, waiting } = campaigns[0] ?? { campaign: null, answered: [], waiting: [] };
    const { consent, loss, limit } = state;
    return { consent, loss, limit, campaign, answered, waiting, campaigns };
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
    const wanted = urls.map(fingerprintOf);
    const differ = urls.length && new Set(wanted).size === urls.length;
    must(differ, ParameterError, "url must be one campaign, or several different ones");
    const known = await this.#read();
    const enrolled = known.consent ? [] : await this.#enrol(urls, token, known, wait);
    return this.#change(async (state) => {
      const found = state.consent ? state.enrolments : enrolled;
      const fingerprints = found.map(({ campaign }) => campaign.fingerprint);
      must(
        String(fingerprints.sort()) === String(wanted.sort()),
        CampaignError,
        "campaign must be the one agreed to; withdraw and ask the user anew",
      );
      const tell = found[0].campaign;
      if (state.consent && (limit === null || limit === state.limit)) return { tell };
      if (limit !== null) {
        const least = found.reduce((sum, { campaign }) => sum + campaign.protocol.loss, 0);
        check.real("limit", limit, least, Number.MAX_VALUE);
      }
      Object.assign(state, { enrolments: found, limit });
      return { state, tell };
    });
  }

  async #enrol(urls, tokens, known, wait) {
    const enrolled = [];
    for (const url of urls) {
      const token = typeof tokens === "string" ? tokens : (tokens?.[url] ?? null);
      const document = await this.#post.fetch(`${url}/document`, { token });
      must(document.status === 200, CampaignError, `campaign must be known: ${document.detail}`);
      const campaign = await Campaign.read(document.text, fingerprintOf(url));
      let given = { key: null, ticket: null };
      if (campaign.keys === "assigned") {
        const answer = await this.#post.fetch(`${url}/keys`, { token, body: "" });
        given = answer.status === 200 ? assigned(campaign, answer.json) : null;
        must(given, CampaignError, `collector must assign a key: ${answer.detail}`);
      }
      const answered = (wait && known.answered[campaign.fingerprint]) || [];
      const client = new Client(campaign.protocol, { key: given.key, account: { spent: 0, answered } });
      enrolled.push(new Enrolment({ url, token, ticket: given.ticket, campaign, client }));
    }
    const names = new Set(enrolled.map(({ campaign }) => campaign.name));
    must(names.size === urls.length, CampaignError, "campaigns must have different names");
    return enrolled;
  }

  /**
   * End the consent: delete keys, memos and queues. What stays is how much was spent and which
   * rounds were answered.
   */
  async withdraw() {
    let spent = "what was";
    await this.#storage.change(async (text) => {
      try {
        const after = (await State.read(text)).withdrawn();
        spent = `the ${after.loss}`;
        return await after.text();
      } catch {
        // Even a state that nobody can read is deleted.
        return null;
      }
    });
    this.#outbox = [];
    return (
      "Key, memo and unsent reports are deleted; nothing more is reported. What was sent stays " +
      `counted and ${spent} spent so far stays spent: if you agree again, new answers are drawn ` +
      "and spend on top of it, and a round that is answered again counts you twice, " +
      "unless you wait for the next one."
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
  async report(value, options) {
    return this.#change(async (state) => {
      const { campaign } = only(state);
      const rounds = await this.#answer(state, { [campaign.name]: value }, options);
      return { state, tell: rounds[campaign.name] };
    });
  }

  /**
   * As `report`, for several campaigns of one agreement: all are queued, or none is.
   *
   * @param {Record<string, unknown>} values by name of the campaign; what is left of the limit goes
   *   to the first ones first
   */
  async reportAll(values, options) {
    return this.#change(async (state) => {
      return { tell: await this.#answer(agreed(state), values, options), state };
    });
  }

  async #answer(state, values, { round } = {}) {
    const rounds = {};
    for (const [name, value] of Object.entries(values)) {
      const enrolment = state.enrolments.find(({ campaign }) => campaign.name === name);
      must(enrolment, ParameterError, "values must be for the campaigns agreed to");
      const asked = round ?? enrolment.campaign.roundAt(Number(this.#clock()));
      const isBegun = round !== undefined || asked >= 0;
      must(isBegun, StateError, "campaign must have begun; report later");
      check.round(asked);
      rounds[name] = await enrolment.report(value, asked, state.left(enrolment));
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
    for (const enrolment of agreed(await this.#read()).enrolments) {
      outcomes[enrolment.campaign.name] = await this.#deliver(enrolment);
    }
    return outcomes;
  }

  async #deliver(enrolment) {
    const outcome = { sent: [], refused: {}, waiting: [], reason: "" };
    let fruitless = 0;
    for (const round of enrolment.waiting) {
      const message = enrolment.queue.get(round);
      const { settled, refusal, reason, stop } = await this.#post.report(enrolment, message);
      if (settled) {
        await this.#settle(enrolment, round, message);
        if (refusal) outcome.refused[round] = refusal;
        else outcome.sent.push(round);
      }
      outcome.reason ||= reason ?? "";
      // One report that settles nothing must not hold up the others for ever.
      fruitless = settled ? 0 : fruitless + 1;
      if (stop || fruitless === FRUITLESS) break;
    }
    outcome.waiting = (await this.#read()).enrolments.find(({ url }) => url === enrolment.url)?.waiting ?? [];
    if (!outcome.waiting.length) outcome.reason = "";
    return outcome;
  }

  /** Take a report off the queue that the collector has settled. */
  #settle({ url }, round, message) {
    return this.#change(async (state) => {
      const now = state.enrolments.find((one) => one.url === url);
      // Another tab may have done so, or the user may have withdrawn.
      if (now?.queue.get(round) !== message) return {};
      now.queue.delete(round);
      return { state };
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
        for (const [round, message] of enrolment.queue) {
          if (gone.has(message)) continue;
          gone.add(message);
          this.#post
            .report(enrolment, message, true)
            .then(({ settled }) => settled && this.#settle(enrolment, round, message))
            .catch(() => {})
            .finally(() => gone.delete(message));
        }
      }
    };
    const hidden = () => page.document.visibilityState === "hidden" && leave();
    const listening = new AbortController();
    const { signal } = listening;
    page.addEventListener("pagehide", leave, { signal });
    page.document.addEventListener("visibilitychange", hidden, { signal });
    this.status().catch(() => {});
    return () => listening.abort();
  }

  /** Forget keys, memos and queues, and start as a new user; says what that costs. */
  async reset(options) {
    return this.#change(async (state) => ({ tell: agreed(state).reset(options), state }));
  }

  async #read() {
    const state = await State.read(await this.#storage.read());
    this.#outbox = state.enrolments;
    return state;
  }

  /** Compute the next state, have it written, and only then tell of it. */
  async #change(step) {
    let told;
    let next;
    await this.#storage.change(async (text) => {
      const before = await State.read(text);
      const { state, tell } = await step(before);
      [told, next] = [tell, state ?? before];
      if (state === undefined) return undefined;
      const made = await state.text();
      return made === text ? undefined : made;
    });
    must(next, StateError, "storage must call what `change` is given");
    this.#outbox = next.enrolments;
    return told;
  }
}

function agreed(state) {
  must(state.consent, StateError, "consent must be given; ask the user");
  return state;
}

function only(state) {
  const isOnly = agreed(state).enrolments.length === 1;
  must(isOnly, StateError, "campaign must be the only one; use reportAll, deliverAll");
  return state.enrolments[0];
}
