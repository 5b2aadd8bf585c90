/**
 * One user's device on the network: consent, enrolment, a queue that survives anything.
 *
 * Nothing is kept in memory that the storage does not hold: each call reads the state, computes the
 * next one, has it written, and only then tells or sends of it.
 */

import { Campaign } from "./campaign.js";
import { Client } from "./client.js";
import { CampaignError, StateError } from "./errors.js";
import { Post } from "./post.js";
import { State, assigned, fingerprintOf } from "./state.js";

/** The reports of one user for one campaign, in one storage. */
export class Sender {
  #storage;
  #clock;
  #post;
  /** What may be sent when the page is hidden: messages that the storage holds. */
  #outbox = { url: null, token: null, queue: new Map() };

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

  /** What is known: consent, campaign, loss, limit, rounds answered, rounds that wait. */
  async status() {
    const state = await State.read(await this.#storage.read());
    this.#adopt(state);
    return {
      consent: state !== null,
      campaign: state?.campaign ?? null,
      loss: state?.client.loss ?? 0,
      limit: state?.client.limit ?? null,
      answered: [...(state?.answered ?? [])],
      waiting: rounds(state),
    };
  }

  /**
   * Record the user's consent to one campaign, and enrol.
   *
   * @param {string} url its fingerprint pins the campaign
   * @param {object} [options]
   * @param {string} [options.token] the campaign's submit token
   * @param {number} [options.limit] hard limit on the loss; agreeing again with one replaces it
   */
  async agree(url, { token = null, limit = null } = {}) {
    const fingerprint = fingerprintOf(url);
    const again = async (state) => {
      if (state.campaign.fingerprint !== fingerprint) {
        throw new CampaignError(
          "campaign must be the one that the user agreed to, got another; withdraw and ask anew, " +
            "or use another storage",
        );
      }
      if (limit === null || limit === state.client.limit) return { tell: state.campaign };
      state.client.setLimit(limit);
      return { state, tell: state.campaign };
    };
    const known = await State.read(await this.#storage.read());
    const enrolled = known === null ? await this.#enrol(url, token, limit, fingerprint) : null;
    return this.#change(async (state) => {
      if (state !== null) return again(state);
      if (enrolled === null) throw new StateError("consent must stay while agreeing; agree again");
      return { state: enrolled, tell: enrolled.campaign };
    });
  }

  async #enrol(url, token, limit, fingerprint) {
    const document = await this.#post.fetch(`${url}/document`, { token });
    if (document.status !== 200) throw new CampaignError(`campaign must be known: ${document.detail}`);
    const campaign = await Campaign.read(document.text, fingerprint);
    let given = { key: null, ticket: null };
    if (campaign.keys === "assigned") {
      const answer = await this.#post.fetch(`${url}/keys`, { token, body: "" });
      given = answer.status === 200 ? assigned(campaign, answer.json) : null;
      if (given === null) throw new CampaignError(`collector must assign a key: ${answer.detail}`);
    }
    const client = new Client(campaign.protocol, { key: given.key, limit });
    return new State({ url, token, ticket: given.ticket, campaign, client });
  }

  /** End the consent: delete the queue and the whole state. */
  async withdraw() {
    let spent = 0;
    await this.#storage.change(async (text) => {
      // Even a state that nobody can read is deleted.
      spent = await State.read(text).then(
        (state) => state?.client.loss ?? 0,
        () => null,
      );
      return null;
    });
    this.#adopt(null);
    return (
      "Key, memo and unsent reports are deleted; nothing more is reported. What was sent stays " +
      `counted and ${spent === null ? "what was" : `the ${spent}`} spent so far stays spent: if ` +
      "you agree again, new answers are drawn and spend on top of it."
    );
  }

  /**
   * Sanitise the user's value for a round and queue the report; nothing is sent yet.
   *
   * @param value a label of the campaign, or a number of its range
   * @param {object} [options]
   * @param {number} [options.round] by default the one that the clock says
   * @returns {Promise<number>} the round; one that was answered stays as it was
   */
  async report(value, { round } = {}) {
    return this.#change(async (state) => {
      const { campaign } = agreed(state);
      const asked = round ?? campaign.roundAt(this.#clock());
      if (asked < 0) throw new StateError("campaign must have begun, it has not; report later");
      const isNew = await state.report(value, asked);
      return { state: isNew ? state : undefined, tell: asked };
    });
  }

  /** Send the queue, oldest first; what cannot be settled now stays. */
  async deliver() {
    const state = agreed(await State.read(await this.#storage.read()));
    const outcome = { sent: [], refused: {}, waiting: [], reason: "" };
    for (const [round, message] of [...state.queue].sort(([one], [other]) => one - other)) {
      const { settled, refusal, reason, stop } = await this.#post.report(state, message);
      if (settled) {
        await this.#settle(round, message);
        if (refusal) outcome.refused[round] = refusal;
        else outcome.sent.push(round);
      }
      outcome.reason ||= reason ?? "";
      if (stop) break;
    }
    outcome.waiting = rounds(await State.read(await this.#storage.read()));
    return outcome;
  }

  /** Take a report off the queue that the collector has settled. */
  #settle(round, message) {
    return this.#change(async (state) => {
      // Another tab may have done so, or the user may have withdrawn.
      if (state?.queue.get(round) !== message) return {};
      state.queue.delete(round);
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
    let gone = new Set();
    const leave = () => {
      const { url, token, queue } = this.#outbox;
      for (const [round, message] of queue) {
        if (gone.has(message)) continue;
        gone.add(message);
        this.#post
          .once({ url, token }, message)
          .then(({ settled }) => settled && this.#settle(round, message))
          .catch(() => {})
          .finally(() => gone.delete(message));
      }
    };
    const hidden = () => page.document.visibilityState === "hidden" && leave();
    page.addEventListener("pagehide", leave);
    page.document.addEventListener("visibilitychange", hidden);
    this.status().catch(() => {});
    return () => {
      page.removeEventListener("pagehide", leave);
      page.document.removeEventListener("visibilitychange", hidden);
    };
  }

  /** Forget key, memo and queue, and start as a new user; says what that costs. */
  async reset() {
    return this.#change(async (state) => ({ tell: agreed(state).reset(), state }));
  }

  /** Compute the next state, have it written, and only then tell of it. */
  async #change(step) {
    let told;
    let next;
    await this.#storage.change(async (text) => {
      const before = await State.read(text);
      const { state, tell } = await step(before);
      told = tell;
      next = state ?? before;
      return state === undefined ? undefined : state.text();
    });
    this.#adopt(next);
    return told;
  }

  #adopt(state) {
    this.#outbox = { url: state?.url, token: state?.token, queue: new Map(state?.queue ?? []) };
  }
}

function agreed(state) {
  if (state === null) {
    throw new StateError("consent must be given before anything is reported; ask the user");
  }
  return state;
}

const rounds = (state) => [...(state?.queue.keys() ?? [])].sort((one, other) => one - other);
