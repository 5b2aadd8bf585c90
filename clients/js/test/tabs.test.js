/**
 * Tabs that share a state, in random orders of all their steps: what a withdrawal or a reset promises holds.
 *
 * `LOLOHA_TAB_SEEDS=1000 node --test test/tabs.test.js` tries more of them.
 */

import assert from "node:assert/strict";
import test from "node:test";
import { CampaignError, Sender, StateError, Unreachable } from "../src/index.js";
import { lossOf, stateOf } from "../src/state.js";
import { START, problem, published, receipt } from "../testing/collector.js";
import { Browser, Tab, repeatable, numbers, settle } from "../testing/tabs.js";

const SEEDS = Number(process.env.LOLOHA_TAB_SEEDS ?? 16);
const STEPS = 340;
const campaigns = await Promise.all(["hours", "days"].map((name) => published({ name })));
const urls = campaigns.map(({ url }) => url);
const EXPECTED = [StateError, CampaignError, Unreachable];

/** A collector of both campaigns, and a network on which anything gets lost. */
class Network {
  counted = new Map();
  paused = new Set();

  constructor(world) {
    this.world = world;
    this.wire = new Tab(world.browser);
  }

  /** What a tab fetches: the request leaves at once, its answer comes when both are told. */
  fetchOf = (who) => async (url, { body }) => {
    const { tab } = who;
    const own = [...this.world.agreeing].filter((one) => one.who === who);
    // Of several that one sender has under way nobody knows whose request it is.
    if (own.length === 1 && url.endsWith("/document")) own[0].hasRead = true;
    const text = this.#begin(url, body, tab);
    await this.wire.gate();
    const answer = text();
    await tab.gate();
    if (tab.isOffline || this.world.chance(0.1)) throw new TypeError("fetch failed");
    return answer;
  };

  #begin(url, body, tab) {
    const { pathname } = new URL(url);
    const isLost = tab.isOffline || this.world.chance(0.1);
    if (pathname.endsWith("/reports")) {
      const isOne = pathname !== "/v1/reports";
      const messages = isOne ? [body] : JSON.parse(body).map((one) => JSON.stringify(one));
      messages.forEach((one) => this.world.leaves(one));
      return () => {
        if (isLost) return problem(503, "unavailable");
        const answers = messages.map((one) => this.#count(one));
        return isOne ? this.#one(answers[0]) : Response.json({ answers: answers.map(([status, body]) => ({ status, body })) });
      };
    }
    if (isLost) return () => problem(503, "unavailable");
    if (pathname.endsWith("/opt-outs")) return () => new Response(null, { status: 204 });
    const { text } = campaigns.find((one) => url.startsWith(one.url));
    if (pathname.endsWith("/document")) return () => new Response(text);
    return () => Response.json({ state: this.paused.has(url) ? "paused" : "open" });
  }

  #one = ([status, body]) =>
    new Response(JSON.stringify(body), { status, headers: { "content-type": status === 200 ? "application/json" : "application/problem+json" } });

  #count(message) {
    const { campaign, round, reporter } = JSON.parse(message);
    if (this.paused.has(urls.find((url) => url.endsWith(campaign)))) {
      this.world.pausedFor.add(this.world.owners.get(message));
      return [410, { type: "urn:loloha:problem:late", title: "", status: 410, detail: "", reason: "late", campaign: "paused", reporter }];
    }
    const place = `${campaign} ${round}`;
    const before = this.counted.get(place) ?? reporter;
    this.world.check(before === reporter, "a user counts once in a round");
    const accepted = this.counted.has(place) ? 0 : 1;
    this.counted.set(place, reporter);
    return [200, { accepted, duplicates: 1 - accepted, refused: [], reporter }];
  }
}

/** One browser, its tabs and what is promised to its user. */
class World {
  /** Texts as they were written; by message the secret of its client; secrets that were deleted. */
  texts = [];
  owners = new Map();
  gone = new Set();
  pausedFor = new Set();
  now = 0;
  /** Agreements that are under way: whose, and whether a withdrawal came after. */
  agreeing = new Set();
  failed = [];

  constructor(seed) {
    Object.assign(this, numbers(seed));
    // As in browsers, or as files can only be asked.
    this.isHeld = this.chance(0.75);
    this.browser = new Browser((text, before) => this.#written(text, before));
    this.network = new Network(this);
    this.tabs = [];
    this.senders = [];
    for (const many of [2, 1, 1]) this.open(many);
  }

  /** Open a tab with so many senders. */
  open(many) {
    const tab = new Tab(this.browser);
    this.tabs.push(tab);
    for (let i = 0; i < many; i++) {
      const who = { tab };
      const { hold, ...asked } = tab.storage();
      who.sender = new Sender(this.isHeld ? { hold, ...asked } : asked, {
        clock: () => START + 20 * this.now,
        fetch: this.network.fetchOf(who),
        sleep: tab.gate,
        attempts: 2,
      });
      who.sender.deliverOnHide(tab.page);
      this.senders.push(who);
    }
    return this.senders.at(-1);
  }

  check(holds, promise) {
    if (!holds) this.failed.push(`step ${this.now}: ${promise}`);
  }

  leaves(message) {
    const owner = this.owners.get(message);
    this.check(owner, "what is sent was kept before");
    this.check(!this.gone.has(owner), "nothing is sent under a deleted identity");
  }

  #written(text, before) {
    this.texts.push(text);
    const [old, made] = [before, text].map((one) => JSON.parse(one ?? "{}").enrolments ?? []);
    const isAsked = [...this.agreeing].some(({ isOff }) => !isOff);
    this.check(old.length || !made.length || isAsked, "nobody is enrolled by a consent that a withdrawal came after");
    // In any tab; who has read nothing yet may see it.
    for (const one of this.agreeing) one.isOff ||= !made.length && one.hasRead;
    for (const { client: { secret }, queue } of made) for (const [, message] of queue) this.owners.set(message, secret);
    for (const { client: { secret }, queue } of old) {
      const now = made.find(({ client }) => client.secret === secret);
      if (!now) this.gone.add(secret);
      else if (!this.pausedFor.has(secret)) {
        const left = new Set(now.queue.map(([, message]) => message));
        for (const [, message] of queue) this.check(left.has(message) || this.#isCounted(message), "what is queued is not lost");
      }
    }
  }

  #isCounted(message) {
    const { campaign, round, reporter } = JSON.parse(message);
    return this.network.counted.get(`${campaign} ${round}`) === reporter;
  }

  /** Begin something in a tab. */
  act() {
    const running = this.senders.filter(({ tab }) => !tab.isFrozen);
    if (!running.length) return;
    const who = this.pick(running);
    const { sender } = who;
    const [first, second] = [this.pick("abc"), this.pick("abc")];
    const values = this.pick([{ hours: first }, { days: first }, { hours: first, days: second }]);
    const round = Math.floor(this.now / 150) + this.below(2);
    const steps = {
      r: () => sender.reportAll(values, { round }),
      d: () => sender.deliverAll(),
      a: () => this.agree(who),
      w: () => this.withdraw(who),
      x: () => sender.reset(),
      o: () => sender.decline(urls[0]),
      p: async () => {
        const { campaigns: [one] } = await sender.status();
        if (one) await sender.preview(one.campaign, { round });
      },
    };
    // Mostly what can be done as things are.
    const isEnrolled = this.browser.text?.includes('"enrolments"');
    this.begin(steps[this.pick(isEnrolled ? "rrrrrdddddawxxop" : "aaaaawrdop")]());
  }

  begin(task) {
    task.catch((error) => {
      if (!EXPECTED.some((kind) => error.constructor === kind)) this.failed.push(error);
    });
  }

  async agree(who) {
    const asked = { who };
    this.agreeing.add(asked);
    await who.sender.agree(urls).finally(() => this.agreeing.delete(asked));
  }

  async withdraw(who) {
    const before = [...this.agreeing].filter((one) => one.who === who);
    await who.sender.withdraw();
    for (const one of before) one.isOff = true;
  }

  /** Something befalls a tab. */
  befall() {
    const tab = this.pick(this.tabs);
    const running = (step) => () => tab.isFrozen || step();
    this.pick([
      running(() => tab.become("hidden")),
      running(() => tab.become("hidden")),
      running(() => tab.become("visible")),
      running(() => tab.become("visible")),
      () => (tab.isFrozen = true),
      () => (tab.isOffline = true),
      running(() => {
        if (this.chance(0.7)) tab.page.dispatchEvent(new Event("pagehide"));
        this.tabs = this.tabs.filter((one) => one !== tab);
        this.senders = this.senders.filter((one) => one.tab !== tab);
        this.browser.forget(tab);
        for (const one of this.agreeing) if (one.who.tab === tab) this.agreeing.delete(one);
        this.open(1 + this.below(2));
      }),
      () => this.browser.late(this),
      () => {
        const url = this.pick(urls);
        if (!this.network.paused.delete(url) && this.chance(0.2)) this.network.paused.add(url);
      },
    ])();
  }

  /** One step goes on that waits to be told; false if there is none. */
  goOn() {
    const able = [...this.tabs, this.network.wire].filter(({ waiting, isFrozen }) => waiting.length && !isFrozen);
    if (!able.length) return false;
    const { waiting } = this.pick(able);
    waiting.splice(this.below(waiting.length), 1)[0]();
    return true;
  }

  async run() {
    this.begin(this.agree(this.senders[0]));
    await this.drain();
    for (; this.now < STEPS; this.now++) {
      const way = this.below(100);
      if (way < 10) this.act();
      else if (way < 16) this.befall();
      else this.goOn();
      for (const tab of this.tabs) if (this.chance(0.05)) Object.assign(tab, { isFrozen: false, isOffline: false });
      await settle();
    }
    for (const tab of this.tabs) Object.assign(tab, { isFrozen: false, isOffline: false });
    this.chance = () => false;
    this.network.paused.clear();
    for (const { tab } of this.senders) tab.become("hidden");
    await this.drain();
    // Nobody waits for a lock, or for anything, for ever.
    const { sender } = this.open(1);
    for (let i = 0; i < 2; i++) {
      this.begin(sender.deliverAll());
      await this.drain();
    }
    const left = JSON.parse(this.browser.text ?? "{}").enrolments ?? [];
    this.check(left.every(({ queue }) => !queue.length), "all that was kept is sent in the end");
    this.check(!this.agreeing.size, "everything comes to an end");
    await this.balance();
  }

  async drain() {
    do {
      await settle();
      this.now += 1;
    } while (this.goOn());
  }

  /** What was spent stays spent. */
  async balance() {
    let before = 0;
    for (const text of this.texts) {
      const state = await stateOf(text);
      const now = lossOf(state);
      this.check(now >= before, `${now} is no less than ${before}, the loss before`);
      before = now;
    }
  }
}

test("whatever tabs do at once, nothing deleted is sent, nothing kept is lost, nobody counts twice", async () => {
  const end = repeatable();
  let sent = 0;
  try {
    for (let seed = 0; seed < SEEDS; seed++) {
      const world = new World(seed);
      await world.run();
      assert.deepEqual(world.failed, [], `seed ${seed}`);
      sent += world.network.counted.size;
    }
  } finally {
    end();
  }
  assert.ok(sent > SEEDS, `${sent} reports were counted`);
});
