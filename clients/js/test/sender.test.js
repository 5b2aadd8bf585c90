/** The sender: consent, a queue that survives anything, and what settles a report. */

import assert from "node:assert/strict";
import test from "node:test";
import {
  BudgetError,
  CampaignError,
  Client,
  DomainError,
  ParameterError,
  Sender,
  StateError,
  Unreachable,
  memoryStorage,
} from "../src/index.js";
import { Collector, HOUR, START, problem, published, receipt } from "../testing/collector.js";

/** A sender with a collector of its own; waits are noted, not waited. */
async function made({ storage = memoryStorage(), changes, agree = true, ...options } = {}) {
  const collector = new Collector(await published(changes));
  const waits = [];
  const clock = { now: START };
  const sender = new Sender(storage, {
    clock: () => clock.now,
    fetch: collector.fetch,
    sleep: async (seconds) => void waits.push(seconds),
    ...options,
  });
  if (agree) await sender.agree(collector.url);
  return { sender, collector, waits, clock, storage };
}

test("nothing is kept or sent before consent", async () => {
  const { sender, collector, storage } = await made({ agree: false });
  await assert.rejects(sender.report("a"), StateError);
  await assert.rejects(sender.deliver(), StateError);
  await assert.rejects(sender.reset(), StateError);
  assert.equal(await storage.read(), null);
  assert.equal(collector.requests.length, 0);
  assert.deepEqual(await sender.status(), {
    consent: false,
    campaign: null,
    loss: 0,
    limit: null,
    answered: [],
    waiting: [],
    campaigns: [],
  });
});

test("a round is answered once, delivered once, and the loss is known", async () => {
  const { sender, collector, clock } = await made();
  assert.equal(await sender.report("b"), 0);
  assert.equal(await sender.report("c"), 0);
  clock.now += HOUR;
  assert.equal(await sender.report("b"), 1);
  const { loss, answered, waiting, campaign } = await sender.status();
  assert.deepEqual([loss, answered, waiting], [2, [0, 1], [0, 1]]);
  assert.deepEqual(campaign.labels, ["a", "b", "c"]);
  assert.deepEqual(await sender.deliver(), { sent: [0, 1], refused: {}, waiting: [], reason: "" });
  assert.deepEqual(await sender.deliver(), { sent: [], refused: {}, waiting: [], reason: "" });
  assert.equal(collector.messages.length, 2);
  assert.equal(await sender.report("a", { round: 1 }), 1);
  assert.deepEqual((await sender.status()).waiting, []);
  const { keepalive, credentials, redirect, referrerPolicy } = collector.requests.at(-1);
  assert.deepEqual([keepalive, credentials, redirect, referrerPolicy], [false, "omit", "error", "no-referrer"]);
});

test("a value that is none, and a clock before the campaign", async () => {
  const { sender, clock, storage } = await made();
  const before = await storage.read();
  await assert.rejects(sender.report("d"), DomainError);
  await assert.rejects(sender.report(null), DomainError);
  await assert.rejects(sender.report("a", { round: -1 }), ParameterError);
  await assert.rejects(sender.report("a", { round: 1.5 }), ParameterError);
  clock.now = START - 1;
  await assert.rejects(sender.report("a"), StateError);
  assert.equal(await storage.read(), before);
});

test("only what this service alone says settles a report", async (context) => {
  const page = (status) => () =>
    new Response("<html>Welcome to the hotel", { status, headers: { "content-type": "text/html" } });
  const json = (status, body, type = "application/json") => () =>
    new Response(body === null ? null : JSON.stringify(body), { status, headers: { "content-type": type } });
  const waits = {
    "a hotel's page": page(200),
    "no content": json(204, null),
    "a gateway's 404": page(404),
    "a gateway's 410": json(410, {}),
    "405": page(405),
    "451": page(451),
    "507": page(507),
    "a strange 200": json(200, { accepted: 2, duplicates: 0, refused: [] }),
    "a receipt of texts": json(200, { accepted: "1", duplicates: 0, refused: [] }),
    "a receipt with a text for its refusals": json(200, { accepted: 1, duplicates: 0, refused: "" }),
    "a receipt without its refusals": json(200, { accepted: 1, duplicates: 0 }),
    "null": json(200, null),
    "a list": json(200, []),
    "a problem of another service": json(410, { type: "about:blank", status: 410 }, "application/problem+json"),
    "malformed, perhaps on its way": () => problem(422, "malformed"),
    "another version": () => problem(422, "unknown_version"),
    "a refusal by a gateway's code": () => problem(502, "late"),
    "a receipt of another report": json(200, { accepted: 1, duplicates: 0, refused: [], reporter: "0" }),
    "a receipt as a page": json(200, { accepted: 1, duplicates: 0, refused: [] }, "text/html"),
    "a problem of another status": json(404, { type: "urn:loloha:problem:late", status: 410 }, "application/problem+json"),
    "a refusal as plain JSON": json(410, { type: "urn:loloha:problem:late", status: 410, reason: "late" }),
    "a list for a reason": json(
      410,
      { type: "urn:loloha:problem:late", status: 410, reason: ["late"] },
      "application/problem+json",
    ),
    "an unknown problem": () => problem(422, "new-in-a-later-version"),
    "an inherited problem": () => problem(422, "constructor"),
    "too early": () => problem(425, "early", { "retry-after": "2" }),
    "a wrong token": () => problem(403, "token"),
    "no token": () => problem(401, "token"),
    "too large a page": () => new Response("x".repeat(100_000)),
    "broken UTF-8": () => new Response(new Uint8Array([0x7b, 0xff])),
    "deep JSON": () => new Response("[".repeat(50_000)),
    "no answer": () => Promise.reject(new TypeError("fetch failed")),
    "the store is away": () => problem(503, "unavailable", { "retry-after": "1" }),
  };
  for (const [name, answer] of Object.entries(waits)) {
    await context.test(`${name} leaves it in the queue`, async () => {
      const { sender, collector } = await made({ attempts: 2 });
      collector.answers = [answer];
      await sender.report("a");
      const { sent, refused, waiting, reason } = await sender.deliver();
      assert.deepEqual([sent, refused, waiting], [[], {}, [0]]);
      assert.notEqual(reason, "");
      collector.answers = [receipt];
      assert.deepEqual((await sender.deliver()).sent, [0]);
      assert.equal(new Set(collector.messages).size, 1, "the same bytes are sent again");
    });
  }
  for (const kind of ["late", "conflict", "bad_key", "bad_ticket", "foreign_campaign"]) {
    await context.test(`${kind} drops it`, async () => {
      const { sender, collector } = await made();
      collector.answers = [() => problem(422, kind)];
      await sender.report("a");
      const { refused, waiting } = await sender.deliver();
      assert.deepEqual([refused, waiting], [{ 0: `it is ${kind}` }, []]);
    });
  }
  await context.test("a duplicate is counted", async () => {
    const { sender, collector } = await made();
    collector.answers = [() => receipt(0)];
    await sender.report("a");
    assert.deepEqual((await sender.deliver()).sent, [0]);
  });
});

test("a report that is too early does not hold up the others; a dead collector is left alone", async () => {
  const { sender, collector } = await made({ attempts: 1 });
  for (const round of [0, 1, 2]) await sender.report("a", { round });
  collector.answers = [() => problem(425, "early"), receipt, receipt];
  assert.deepEqual((await sender.deliver()).waiting, [0]);
  await sender.report("a", { round: 3 });
  collector.answers = [() => Promise.reject(new TypeError())];
  collector.messages.length = 0;
  await sender.deliver();
  assert.equal(collector.messages.length, 1);
});

test("a report that nobody can read holds up no other; three such answers end a delivery", async () => {
  const { sender, collector } = await made({ attempts: 1 });
  for (let round = 0; round < 6; round++) await sender.report("a", { round });
  const unread = () => problem(422, "malformed");
  collector.answers = [unread, receipt, unread, unread, receipt, receipt];
  const { sent, waiting, reason } = await sender.deliver();
  assert.deepEqual([sent, waiting, reason], [[1, 4, 5], [0, 2, 3], "it is malformed"]);
  collector.messages.length = 0;
  collector.answers = [unread];
  await sender.report("a", { round: 6 });
  assert.deepEqual((await sender.deliver()).waiting, [0, 2, 3, 6]);
  assert.equal(collector.messages.length, 3);
});

test("what is withdrawn or reset while it is delivered is sent no more, and not tried again", async () => {
  for (const end of ["withdraw", "reset"]) {
    for (const [first, sent] of [[receipt, 1], [() => problem(503, "unavailable"), 1]]) {
      const { sender, collector } = await made();
      for (let round = 0; round < 4; round++) await sender.report("a", { round });
      collector.answers = [
        async (message) => {
          await sender[end]();
          return first(message);
        },
        receipt,
      ];
      const { waiting, reason } = await sender.deliver();
      assert.deepEqual([waiting, reason], [[], ""]);
      assert.equal(collector.messages.length, sent, end);
    }
  }
  // What the user agrees to after that is another report of the same round.
  const { sender, collector, storage } = await made();
  for (let round = 0; round < 2; round++) await sender.report("a", { round });
  const old = JSON.parse(await storage.read()).enrolments[0].queue.map(([, message]) => message);
  collector.answers = [
    async (message) => {
      await sender.withdraw();
      await sender.agree(collector.url);
      for (let round = 0; round < 2; round++) await sender.report("a", { round });
      return receipt(message);
    },
    receipt,
  ];
  assert.deepEqual((await sender.deliver()).waiting, [0, 1]);
  assert.deepEqual(collector.messages, [old[0]]);
  assert.deepEqual((await sender.deliver()).sent, [0, 1]);
});

test("two senders on one storage, a report each", async () => {
  const { sender, collector, storage, clock } = await made();
  for (let round = 0; round < 4; round++) await sender.report("a", { round });
  const other = new Sender(storage, { clock: () => clock.now, fetch: collector.fetch, sleep: async () => {} });
  collector.answers = [
    async (message) => {
      await other.deliver();
      return receipt(message);
    },
    receipt,
  ];
  await sender.deliver();
  assert.equal(collector.messages.length, 5, "the first one twice, the others once");
  assert.equal(new Set(collector.messages).size, 4);
});

test("waits grow, obey Retry-After, and end", async () => {
  const { sender, collector, waits } = await made({ attempts: 4, first: 1, longest: 8 });
  await sender.report("a");
  collector.answers = [
    () => problem(503, "unavailable"),
    () => problem(429, "rate-limit", { "retry-after": "7" }),
    () => Promise.reject(new TypeError()),
    receipt,
  ];
  assert.deepEqual((await sender.deliver()).sent, [0]);
  assert.equal(waits.length, 3);
  assert.ok(waits[0] <= 1 && waits[1] >= 7 && waits[2] <= 4, waits);
  await sender.report("a", { round: 1 });
  collector.answers = [() => problem(503, "unavailable", { "retry-after": "86400" })];
  assert.deepEqual((await sender.deliver()).waiting, [1]);
  assert.equal(waits.length, 3, "a day is not waited for");
});

test("the pinned campaign and no other", async () => {
  const { sender, collector } = await made({ agree: false, attempts: 1 });
  collector.text = (await published({ name: "other" })).text;
  await assert.rejects(sender.agree(collector.url), CampaignError);
  collector.text = "<html>";
  await assert.rejects(sender.agree(collector.url), CampaignError);
  const good = await published();
  for (const hostile of [` ${good.text}`, good.text.replace('"k":3', '"k":2,"k":3'), good.text.replace('"k":3', '"k":3.0')]) {
    collector.text = hostile;
    await assert.rejects(sender.agree(collector.url), CampaignError);
  }
  collector.fetch_ = collector.fetch;
  for (const url of ["", "x", "https://h/v1/campaigns/abc", "ftp://h" + new URL(collector.url).pathname, `${collector.url}?a`, `${collector.url}#a`, collector.url.replace("//", "//user@"), `${collector.url}/`]) {
    await assert.rejects(sender.agree(url), ParameterError, url);
  }
  assert.equal((await sender.status()).consent, false);
  collector.text = good.text;
  await sender.agree(collector.url);
  const other = await published({ name: "other" });
  await assert.rejects(sender.agree(other.url), CampaignError);
  await sender.agree(collector.url);
});

test("a collector that cannot be reached when the user agrees", async () => {
  const { sender, storage } = await made({
    agree: false,
    attempts: 1,
    fetch: () => Promise.reject(new TypeError()),
  });
  await assert.rejects(sender.agree((await published()).url), Unreachable);
  assert.equal(await storage.read(), null);
});

test("keys that are assigned, with their tickets", async () => {
  const { sender, collector } = await made({ changes: { keys: "assigned" } });
  await sender.report("a");
  await sender.deliver();
  const { key, ticket } = JSON.parse(collector.messages[0]);
  assert.deepEqual([key, ticket], ["03", "7".repeat(32)]);
  await assert.rejects(sender.reset(), StateError);
  for (const said of [{}, { key: "00", ticket: "a" }, { key: "0003", ticket: "a" }, { key: "03" }, { key: "03", ticket: "x".repeat(500) }, { key: "zz", ticket: "a" }, null]) {
    const next = await made({ agree: false, changes: { keys: "assigned" } });
    next.collector.keys = () => Response.json(said);
    await assert.rejects(next.sender.agree(next.collector.url), CampaignError, JSON.stringify(said));
  }
});

test("a token that no header can carry is refused, and never shown", async () => {
  for (const token of ["", "a\nb", "é", "a b"]) {
    const { sender, collector } = await made({ agree: false });
    await assert.rejects(sender.agree(collector.url, { token }), (error) => {
      return error instanceof ParameterError && (token === "" || !error.message.includes(token));
    });
  }
  const { sender, collector } = await made({ agree: false });
  await sender.agree(collector.url, { token: "secret" });
  assert.equal(collector.requests[0].headers.Authorization, "Bearer secret");
  await sender.withdraw();
  await sender.agree(collector.url, { token: { [collector.url]: "other", "https://else": "secret" } });
  assert.equal(collector.requests.at(-1).headers.Authorization, "Bearer other");
  await sender.withdraw();
  await sender.agree(collector.url, { token: "long".repeat(100) });
  assert.equal(await sender.report("a"), 0, "a long token is read again");
  await sender.withdraw();
  await sender.agree(collector.url, { token: { "https://else": "secret" } });
  assert.equal(collector.requests.at(-1).headers.Authorization, undefined);
});

test("a limit holds, and is replaced as the user asks", async () => {
  const { sender, collector } = await made({ agree: false });
  await assert.rejects(sender.agree(collector.url, { limit: 1 }), ParameterError);
  await sender.agree(collector.url, { limit: 2 });
  const said = [];
  for (const [round, value] of [[0, "a"], [1, "b"], [2, "c"], [3, "a"]]) {
    said.push(await sender.report(value, { round }));
  }
  // One cell of two is paid for: what falls into the other one is not reported.
  assert.equal(said[3], 3);
  assert.ok(said.every((round, i) => round === i || round === null));
  const { loss, answered } = await sender.status();
  assert.deepEqual([loss, answered], [2, said.filter((round) => round !== null)]);
  await sender.agree(collector.url, { limit: 4 });
  assert.equal((await sender.status()).limit, 4);
  for (const [i, value] of ["a", "b", "c"].entries()) {
    assert.equal(await sender.report(value, { round: 10 + i }), 10 + i);
  }
});

test("withdrawal deletes all but what was spent and which rounds were answered", async () => {
  const { sender, storage, collector } = await made({ agree: false });
  await sender.withdraw();
  assert.equal(await storage.read(), null);
  await sender.agree(collector.url);
  await sender.report("a");
  const said = await sender.withdraw();
  for (const text of [
    "nothing more is reported",
    "What was sent stays counted",
    "the 2 spent so far stays spent",
    "new answers are drawn",
    "counts you twice, unless you wait for the next one",
  ]) {
    assert.ok(said.includes(text), text);
  }
  const kept = JSON.parse(await storage.read());
  const fingerprint = collector.url.slice(-64);
  assert.deepEqual(kept, { type: "loloha-spent", version: 1, spent: 2, answered: { [fingerprint]: [[0, 0]] } });
  await sender.withdraw();
  assert.deepEqual(JSON.parse(await storage.read()), kept);
  const { consent, loss } = await sender.status();
  assert.deepEqual([consent, loss], [false, 2]);
  await assert.rejects(sender.deliver(), StateError);
  // Who agrees again has that spent already, and may wait for rounds that were not answered.
  await sender.agree(collector.url, { limit: 4, wait: true });
  assert.equal(await sender.report("b", { round: 0 }), 0);
  assert.deepEqual((await sender.status()).waiting, []);
  assert.equal(await sender.report("b", { round: 1 }), 1);
  assert.equal((await sender.status()).loss, 4);
  await sender.withdraw();
  await sender.agree(collector.url, { limit: 4 });
  assert.equal(await sender.report("b", { round: 0 }), null);
});

test("a queue is bounded, and its oldest report goes", async () => {
  const { sender, storage } = await made();
  await sender.report("a", { round: 0 });
  const state = JSON.parse(await storage.read());
  const [enrolment] = state.enrolments;
  const message = JSON.parse(enrolment.queue[0][1]);
  const client = await Client.load(JSON.stringify(enrolment.client));
  for (let round = 1; round < 1000; round++) client.report(0, round);
  enrolment.client = JSON.parse(await client.save());
  enrolment.queue = Array.from({ length: 1000 }, (_, round) => [round, JSON.stringify({ ...message, round })]);
  const full = new Sender(memoryStorage(JSON.stringify(state)), { clock: () => START });
  const { loss } = await full.status();
  for (const round of [2000, 1500]) assert.equal(await full.report("a", { round }), round);
  const { waiting, loss: after } = await full.status();
  assert.deepEqual([waiting.length, waiting[0], ...waiting.slice(-3)], [1000, 2, 999, 1500, 2000]);
  assert.equal(after, loss);
  assert.equal(await full.report("b", { round: 0 }), 0);
  assert.equal((await full.status()).waiting[0], 2, "its round is not answered again");
});

test("a queue holds reports of its rounds, and nothing else", async () => {
  const { sender, storage } = await made();
  await sender.report("a");
  const good = JSON.parse(await storage.read());
  for (const queue of [[[0, "x"]], [[0, "7"]], [[0, "{}"]], [["0", good.enrolments[0].queue[0][1]]], [[0, JSON.stringify({ reporter: "0".repeat(32) })]]]) {
    const text = JSON.stringify({ ...good, enrolments: [{ ...good.enrolments[0], queue }] });
    await assert.rejects(new Sender(memoryStorage(text)).status(), StateError, text);
  }
});

test("a clock that shows no time, a storage that keeps nothing", async () => {
  for (const now of [NaN, Infinity, -Infinity, "x", null, undefined, 10n, {}]) {
    const { sender } = await made({ clock: () => now });
    await assert.rejects(sender.report("a"), (error) => error instanceof StateError || error instanceof ParameterError);
    assert.equal((await sender.status()).loss, 0);
  }
  await assert.rejects(made({ storage: { read: async () => null, change: async () => {} } }), StateError);
});

test("a state that nobody can read is refused, and deleted when the user withdraws", async () => {
  for (const text of ["{", "[]", "null", '{"type":"loloha-sender","version":3}', '{"type":"loloha-spent","version":1,"spent":-1,"answered":{}}', '{"type":"loloha-sender","version":2,"limit":null,"spent_before":0.0,"enrolments":[]}']) {
    const damaged = memoryStorage(text);
    const sender = new Sender(damaged);
    await assert.rejects(sender.report("a"), StateError, text);
    await assert.rejects(sender.status(), StateError);
    await sender.withdraw();
    assert.equal(await damaged.read(), null);
  }
});

/** Two campaigns on one collector, under one agreement. */
async function two(limit = null) {
  const [hours, pages] = [await published(), await published({ name: "pages" })];
  const [one, other] = [new Collector(hours), new Collector(pages)];
  const fetch = (url, init) => (url.startsWith(pages.url) ? other : one).fetch(url, init);
  const storage = memoryStorage();
  const sender = new Sender(storage, { clock: () => START, fetch, attempts: 1 });
  await sender.agree([hours.url, pages.url], { limit });
  return { sender, one, other, storage, urls: [hours.url, pages.url] };
}

test("several campaigns under one limit: the sum of their losses is bounded", async () => {
  await assert.rejects(two(3), ParameterError);
  const { sender, one, other, storage, urls } = await two(4);
  await assert.rejects(sender.report("a"), StateError);
  await assert.rejects(sender.deliver(), StateError);
  await assert.rejects(sender.reportAll({ hours: "a", unknown: "b" }), ParameterError);
  await assert.rejects(sender.reportAll({ hours: "a", pages: "d" }), DomainError);
  assert.equal((await sender.status()).loss, 0, "all are queued, or none is");
  assert.deepEqual(await sender.reportAll({ hours: "a", pages: "b" }), { hours: 0, pages: 0 });
  assert.equal((await sender.status()).loss, 4);
  for (let round = 1; round < 6; round++) {
    for (const value of "abc") await sender.reportAll({ hours: value, pages: value }, { round });
  }
  const { loss, campaigns } = await sender.status();
  assert.deepEqual([loss, campaigns.map((each) => each.loss)], [4, [2, 2]]);
  const outcomes = await sender.deliverAll();
  assert.deepEqual(Object.keys(outcomes), ["hours", "pages"]);
  assert.equal(one.messages.length, outcomes.hours.sent.length);
  assert.equal(other.messages.length, outcomes.pages.sent.length);
  await sender.agree([...urls].reverse(), { limit: 8 });
  assert.equal((await sender.status()).limit, 8);
  await assert.rejects(sender.agree(urls[0]), CampaignError);
  await assert.rejects(sender.agree([urls[0], urls[0]]), ParameterError);
  await assert.rejects(sender.agree([]), ParameterError);
  assert.match(await sender.reset(), /4 spent so far stays spent/);
  assert.match(await sender.withdraw(), /4 spent so far stays spent/);
  assert.deepEqual(Object.keys(JSON.parse(await storage.read()).answered).length, 2);
});

test("a reset begins anew, with what was spent", async () => {
  const { sender, storage } = await made();
  await sender.report("a");
  const before = JSON.parse(await storage.read()).enrolments[0].client;
  assert.match(await sender.reset(), /2 spent so far stays spent/);
  const after = JSON.parse(await storage.read()).enrolments[0].client;
  assert.notEqual(after.secret, before.secret);
  const { loss, waiting } = await sender.status();
  assert.deepEqual([loss, waiting], [2, []]);
});

test("two senders of one storage, all at once, answer a round once", async () => {
  const { sender, collector, storage } = await made();
  const other = new Sender(storage, { fetch: collector.fetch, clock: () => START });
  const rounds = Array.from({ length: 20 }, (_, i) => i % 10);
  await Promise.all(rounds.map((round, i) => (i % 2 ? sender : other).report("abc"[i % 3], { round })));
  await Promise.all([sender.deliver(), other.deliver()]);
  const byRound = new Map();
  for (const message of collector.messages) {
    const { round } = JSON.parse(message);
    assert.ok(!byRound.has(round) || byRound.get(round) === message);
    byRound.set(round, message);
  }
  assert.equal(byRound.size, 10);
  assert.deepEqual((await other.status()).waiting, []);
});

test("memory never runs ahead of the storage", async () => {
  let full = false;
  let text = null;
  const storage = {
    read: async () => text,
    async change(next) {
      const made = await next(text);
      if (full && made !== undefined) throw new StateError("state must be writable; it is full");
      if (made !== undefined) text = made;
    },
  };
  const { sender, collector } = await made({ storage });
  await sender.report("a", { round: 0 });
  const kept = text;
  full = true;
  for (const step of [
    () => sender.report("b", { round: 1 }),
    () => sender.reset(),
    () => sender.withdraw(),
    () => sender.agree(collector.url, { limit: 8 }),
    () => sender.deliver(),
  ]) {
    await assert.rejects(step(), StateError);
    assert.equal(text, kept);
    const { answered, waiting, limit, loss } = await sender.status();
    assert.deepEqual([answered, waiting, limit, loss], [[0], [0], null, 2]);
  }
  full = false;
  assert.equal(await sender.report("c", { round: 1 }), 1);
  // Counted before, and settled now: the collector knows it by its pseudonym.
  assert.deepEqual((await sender.deliver()).sent, [0, 1]);
  assert.equal(new Set(collector.messages).size, 2);
});

test("a page that goes away sends its queue once, and settles what is answered", async () => {
  const { sender, collector } = await made();
  const page = new EventTarget();
  page.document = Object.assign(new EventTarget(), { visibilityState: "visible" });
  await sender.report("a");
  const stop = sender.deliverOnHide(page);
  page.document.dispatchEvent(new Event("visibilitychange"));
  assert.equal(collector.messages.length, 0);
  page.document.visibilityState = "hidden";
  page.document.dispatchEvent(new Event("visibilitychange"));
  page.dispatchEvent(new Event("pagehide"));
  assert.equal(collector.messages.length, 1, "at once, without waiting for anything");
  assert.equal(collector.requests.at(-1).keepalive, true);
  for (let i = 0; i < 50 && (await sender.status()).waiting.length; i++) await new Promise(setImmediate);
  assert.deepEqual((await sender.status()).waiting, []);
  await sender.report("a", { round: 1 });
  stop();
  page.dispatchEvent(new Event("pagehide"));
  assert.equal(collector.messages.length, 1);
  await sender.withdraw();
});

test("nothing secret is printed", async () => {
  const { inspect } = await import("node:util");
  const { sender, storage } = await made();
  await sender.report("a");
  const { secret } = JSON.parse(await storage.read()).enrolments[0].client;
  const shown = inspect([sender, await sender.status()], { depth: 9, showHidden: false });
  assert.ok(!shown.includes(secret));
});
