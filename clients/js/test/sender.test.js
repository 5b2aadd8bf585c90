/** The sender: consent, a queue that survives anything, and what settles a report. */

import assert from "node:assert/strict";
import test from "node:test";
import {
  Campaign,
  CampaignError,
  Client,
  DomainError,
  ParameterError,
  Protocol,
  Sender,
  StateError,
  Unreachable,
  encode,
  memoryStorage,
} from "../src/index.js";
import { canonical, parse } from "../src/json.js";
import { Collector, HOUR, START, problem, published, receipt, sealed } from "../testing/collector.js";

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
    optedOut: false,
    loss: 0,
    limit: null,
    campaigns: [],
  });
});

test("a round is answered once, delivered once, and the loss is known", async () => {
  const { sender, collector, clock } = await made();
  assert.equal(await sender.report("b"), 0);
  assert.equal(await sender.report("c"), 0);
  clock.now += HOUR;
  assert.equal(await sender.report("b"), 1);
  const { loss, campaigns } = await sender.status();
  const [{ campaign, ...own }] = campaigns;
  assert.deepEqual([loss, own], [2, { loss: 2, answered: [0, 1], waiting: [0, 1] }]);
  assert.deepEqual(campaign.labels, ["a", "b", "c"]);
  assert.deepEqual(await sender.deliver(), { sent: [0, 1], refused: {}, waiting: [], reason: "", campaign: "open" });
  assert.deepEqual(await sender.deliver(), { sent: [], refused: {}, waiting: [], reason: "", campaign: "open" });
  assert.equal(collector.messages.length, 2);
  assert.equal(await sender.report("a", { round: 1 }), 1);
  assert.deepEqual((await sender.status()).campaigns[0].waiting, []);
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
  await assert.rejects(sender.report("a", { round: NaN }), ParameterError);
  clock.now = START - 1;
  await assert.rejects(sender.report("a"), StateError);
  // The value first, as in Python.
  await assert.rejects(sender.report("d"), DomainError);
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
      collector.answers = [(message) => problem(422, kind, {}, message)];
      await sender.report("a");
      const { refused, waiting } = await sender.deliver();
      assert.deepEqual([refused, waiting], [{ 0: `it is ${kind}` }, []]);
    });
  }
  await context.test("a duplicate is counted", async () => {
    const { sender, collector } = await made();
    collector.answers = [(message) => receipt(message, 0)];
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
      await sender.agree(collector.url, { wait: false });
      for (let round = 0; round < 2; round++) await sender.report("a", { round });
      return receipt(message);
    },
    receipt,
  ];
  assert.deepEqual((await sender.deliver()).waiting, [0, 1]);
  assert.deepEqual(collector.messages, [old[0]]);
  assert.deepEqual((await sender.deliver()).sent, [0, 1]);
});

test("a report that another page settles meanwhile ends no delivery", async () => {
  const { sender, collector, storage, clock } = await made();
  for (let round = 0; round < 4; round++) await sender.report("a", { round });
  const other = new Sender(storage, { clock: () => clock.now, fetch: collector.fetch });
  const early = () => problem(425, "early");
  collector.answers = [
    async (message) => {
      // It settles round 1 alone.
      collector.answers = [early, receipt, early, early];
      await other.deliver();
      collector.answers = [receipt];
      return receipt(message);
    },
  ];
  assert.deepEqual(await sender.deliver(), { sent: [0, 2, 3], refused: {}, waiting: [], reason: "", campaign: "open" });
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
  for (const url of ["", "x", "https://h/v1/campaigns/abc", "ftp://h" + new URL(collector.url).pathname, `${collector.url}?a`, `${collector.url}#a`, collector.url.replace("//", "//user@"), `${collector.url} `, collector.url.replace("//", "/"), collector.url.replace("//", ""), collector.url.replace("//", "\\\\")]) {
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
  for (const said of [{}, { key: "00", ticket: "a" }, { key: "0003", ticket: "a" }, { key: "03" }, { key: "03", ticket: "x".repeat(500) }, { key: "03", ticket: "t" }, { key: "03", ticket: "A".repeat(32) }, { key: "03", ticket: ["7".repeat(32)] }, { key: "zz", ticket: "a" }, null]) {
    const next = await made({ agree: false, changes: { keys: "assigned" } });
    next.collector.keys = () => Response.json(said);
    await assert.rejects(next.sender.agree(next.collector.url), CampaignError, JSON.stringify(said));
  }
});

test("a token that no header can carry is refused, and never shown", async () => {
  for (const token of ["", "a\nb", "é", " ", "a\t", "a\u00a0b", "a\u007f"]) {
    const { sender, collector } = await made({ agree: false });
    await assert.rejects(sender.agree(collector.url, { token }), (error) => {
      return error instanceof ParameterError && (!token.trim() || !error.message.includes(token));
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

test("withdrawal deletes all but what was spent and committed and which rounds were answered", async () => {
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
    "Rounds that were answered are not answered again",
  ]) {
    assert.ok(said.includes(text), text);
  }
  const kept = JSON.parse(await storage.read());
  const { checksum, ...plain } = kept;
  const fingerprint = collector.url.slice(-64);
  assert.deepEqual(plain, {
    type: "loloha-spent",
    version: 1,
    spent: 2,
    committed: 4,
    answered: { "": [[0, 1]], [fingerprint]: [[0, 0]] },
  });
  await sender.withdraw();
  const { checksum: _, ...again } = JSON.parse(await storage.read());
  assert.deepEqual(again, { ...plain, answered: { ...plain.answered, "": [[0, 2]] } });
  const { consent, loss } = await sender.status();
  assert.deepEqual([consent, loss], [false, 2]);
  await assert.rejects(sender.deliver(), StateError);
  // Who agrees again has that spent already, and waits for rounds that were not answered.
  await sender.agree(collector.url, { limit: 8 });
  assert.equal(await sender.report("b", { round: 0 }), 0);
  assert.deepEqual((await sender.status()).campaigns[0].waiting, []);
  assert.equal(await sender.report("b", { round: 1 }), 1);
  assert.equal((await sender.status()).loss, 4);
  await sender.withdraw();
  await sender.agree(collector.url, { wait: false });
  await sender.report("b", { round: 0 });
  assert.deepEqual((await sender.status()).campaigns[0].waiting, [0], "asked for: it counts this user twice");
});

test("no window of a panel holds two reports, whoever asks for another", async () => {
  const round = { start: "2026-01-01T00:00:00Z", seconds: HOUR, every: 2 };
  const { sender, collector } = await made({ changes: { round } });
  for (const round of [0, 1]) await sender.report("a", { round });
  const { loss, campaigns: [{ answered }] } = await sender.status();
  assert.equal(answered.length, 1);
  for (const time of [1, 2]) {
    assert.match(await sender.reset({ wait: false }), /not answered again/, time);
    await sender.report("b", { round: answered[0] });
    await sender.withdraw();
    await sender.agree(collector.url, { wait: false });
    await sender.report("b", { round: answered[0] });
  }
  assert.equal((await sender.status()).loss, loss);
  assert.equal(await sender.report("b", { round: answered[0] + 2 }), answered[0] + 2);
  const client = new Client(new Protocol({ type: "grr", version: 1, k: 5, eps: 1 }), { every: 2 });
  const due = client.isDue(0) ? 0 : 1;
  client.report(1, due);
  client.reset({ wait: false });
  assert.throws(() => client.report(2, due), StateError);
});

test("rounds that were answered are not answered again, whatever ended in between", async () => {
  const { sender, collector } = await made();
  const waiting = async () => (await sender.status()).campaigns[0].waiting;
  await sender.report("a", { round: 0 });
  assert.match(await sender.reset({ wait: false }), /counts you twice/);
  await sender.report("a", { round: 1 });
  // A reset that waits, or a new agreement, knows of the rounds that an earlier one did not wait for.
  assert.match(await sender.reset(), /2 spent so far|4 spent so far/);
  for (const round of [0, 1]) await sender.report("a", { round });
  assert.deepEqual(await waiting(), []);
  await sender.report("a", { round: 2 });
  await sender.reset({ wait: false });
  await sender.withdraw();
  await sender.agree(collector.url);
  for (const round of [0, 1, 2]) await sender.report("a", { round });
  assert.deepEqual(await waiting(), []);
  assert.equal(await sender.report("a", { round: 3 }), 3);
  assert.deepEqual(await waiting(), [3]);
});

test("a queue is bounded, and its oldest report goes", async () => {
  const { sender, storage } = await made();
  await sender.report("a", { round: 0 });
  const state = parse(await storage.read());
  const [enrolment] = state.enrolments;
  const client = await Client.load(canonical(enrolment.client));
  const campaign = await Campaign.restore(enrolment.campaign);
  for (let round = 1; round < 1000; round++) {
    const report = client.report(0, round);
    const reporter = await client.reporter(round);
    enrolment.queue.push([round, encode(campaign, report, { round, reporter })]);
  }
  enrolment.client = parse(await client.save());
  const full = new Sender(memoryStorage(await sealed(state)), { clock: () => START });
  const { loss } = await full.status();
  for (const round of [2000, 1500]) assert.equal(await full.report("a", { round }), round);
  const { campaigns: [{ waiting }], loss: after } = await full.status();
  assert.deepEqual([waiting.length, waiting[0], ...waiting.slice(-3)], [1000, 2, 999, 1500, 2000]);
  assert.equal(after, loss);
  assert.equal(await full.report("b", { round: 0 }), 0);
  assert.equal((await full.status()).campaigns[0].waiting[0], 2, "its round is not answered again");
});

test("a message that was changed is not sent", async () => {
  const joint = { type: "rappor", version: 1, k: 3, eps_inf: 2, eps_1: 1 };
  const grr = { type: "blh", version: 1, k: 3, eps: 1, hash: "linear" };
  for (const changes of [{}, { protocol: joint }, { protocol: grr }, { keys: "assigned" }]) {
    const { sender, storage, collector } = await made({ changes });
    for (const round of [0, 1]) await sender.report("a", { round });
    // It is known which reports are sound, and checked again for every text.
    await sender.status();
    const good = await storage.read();
    const state = parse(good);
    const [enrolment] = state.enrolments;
    const message = JSON.parse(enrolment.queue[0][1]);
    const flipped = (text) => text.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
    const wrong = [
      { campaign: "0".repeat(64) },
      { round: 1 },
      { reporter: "0".repeat(32) },
      { reporter: message.reporter.toUpperCase() },
      { y: flipped(message.y) },
      { y: "" },
      { version: 2 },
      { ticket: "7".repeat(31) },
      { more: 1 },
      { key: "01" === message.key ? "02" : "01" },
    ];
    for (const change of wrong) {
      const [[round], ...rest] = enrolment.queue;
      const queue = [[round, JSON.stringify({ ...message, ...change })], ...rest];
      const text = await sealed({ ...state, enrolments: [{ ...enrolment, queue }] });
      await storage.change(async () => text);
      await assert.rejects(sender.deliver(), StateError, JSON.stringify(change));
      await assert.rejects(new Sender(memoryStorage(text)).status(), StateError, JSON.stringify(change));
    }
    // Spaces and the order of members are free: Python writes others.
    const [[round, sound], ...rest] = enrolment.queue;
    const reversed = Object.fromEntries(Object.entries(JSON.parse(sound)).reverse());
    const queue = [[round, JSON.stringify(reversed, null, 1)], ...rest];
    await storage.change(() => sealed({ ...state, enrolments: [{ ...enrolment, queue }] }));
    assert.deepEqual((await sender.deliver()).sent, [0, 1]);
    assert.equal(collector.messages.length, 2);
  }
});

test("a message of a client that was reset is not its successor's", async () => {
  const { sender, storage } = await made();
  await sender.report("a");
  const [{ queue }] = parse(await storage.read()).enrolments;
  await sender.reset();
  const state = parse(await storage.read());
  state.enrolments[0].queue = queue;
  await storage.change(() => sealed(state));
  await assert.rejects(sender.deliver(), StateError);
});

test("a queue holds reports of its rounds, and nothing else", async () => {
  const { sender, storage } = await made();
  await sender.report("a");
  const good = parse(await storage.read());
  for (const queue of [[[0, "x"]], [[0, "7"]], [[0, "{}"]], [["0", good.enrolments[0].queue[0][1]]], [[0, JSON.stringify({ reporter: "0".repeat(32) })]]]) {
    const text = await sealed({ ...good, enrolments: [{ ...good.enrolments[0], queue }] });
    await assert.rejects(new Sender(memoryStorage(text)).status(), StateError, text);
  }
});

test("a clock that shows no time, a storage that keeps nothing", async () => {
  const changes = { round: { start: "2026-01-01T00:00:00Z", seconds: HOUR, expires: "2027-01-01T00:00:00Z" } };
  for (const now of [NaN, Infinity, -Infinity, "x", undefined, {}]) {
    const { sender, storage, collector, clock } = await made({ changes });
    await sender.report("a");
    const before = await storage.read();
    clock.now = now;
    for (const step of [() => sender.report("a"), () => sender.report("a", { round: 1 }), () => sender.deliver(), () => sender.preview()]) {
      await assert.rejects(step(), ParameterError);
    }
    const page = madePage();
    const end = sender.deliverOnHide(page);
    await idle(storage);
    page.become("hidden");
    await idle(storage);
    end();
    assert.equal(await storage.read(), before, "nothing is dropped by a clock that shows no end");
    assert.equal(collector.messages.length, 0);
  }
  for (const now of [null, 10n]) await assert.rejects((await made({ clock: () => now })).sender.report("a"), StateError);
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

test("what was spent before a state that is damaged outlives its withdrawal, and what is lost is said", async () => {
  const { sender, collector, storage } = await made();
  await sender.report("a");
  await sender.withdraw();
  const ledger = await storage.read();
  await sender.agree(collector.url);
  await sender.report("a", { round: 1 });
  const state = parse(await storage.read());
  for (const [text, kept] of [
    [canonical({ ...state, checksum: "0".repeat(64) }), ledger],
    [canonical({ ...state, limit: -1 }), ledger],
    [canonical({ ...state, enrolments: 7 }), ledger],
    [canonical({ ...state, version: 3 }), ledger],
    [canonical({ ...state, spent_before: -2 }), null],
    [canonical(state).slice(1), null],
    ["", null],
  ]) {
    const damaged = memoryStorage(text);
    const other = new Sender(damaged);
    await assert.rejects(other.status(), StateError, text);
    const said = await other.withdraw();
    assert.match(said, /what this damaged state spent is not known/);
    if (kept) assert.match(said, /the 2 spent so far stays spent/);
    const left = await damaged.read();
    // It counts one withdrawal more.
    const rounds = (text) => ({ ...parse(text), checksum: "", answered: { ...parse(text).answered, "": [] } });
    if (kept) assert.deepEqual(rounds(left), rounds(kept));
    else assert.ok(left === null || parse(left).spent === 0, left);
  }
  assert.ok(!(await sender.withdraw()).includes("damaged"));
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

test("campaigns may be called as members of every object are", async () => {
  const names = ["__proto__", "constructor", "toString"];
  const campaigns = await Promise.all(names.map((name) => published({ name })));
  const collectors = campaigns.map((one) => new Collector(one));
  const fetch = (url, init) => collectors.find((one) => url.startsWith(one.url)).fetch(url, init);
  const sender = new Sender(memoryStorage(), { clock: () => START, fetch, attempts: 1 });
  await sender.agree(campaigns.map(({ url }) => url));
  const values = Object.fromEntries(names.map((name) => [name, "a"]));
  const rounds = (round) => names.map((name) => [name, round]);
  assert.deepEqual(Object.entries(await sender.reportAll(values)), rounds(0));
  for (const one of collectors) one.answers = [(message) => problem(410, "late", {}, message, { campaign: "ended" })];
  assert.deepEqual(Object.entries(await sender.deliverAll()).map(([name, { campaign }]) => [name, campaign]), rounds("ended"));
  assert.deepEqual(Object.entries(await sender.reportAll(values, { round: 1 })), rounds(null));
  assert.deepEqual((await sender.status()).campaigns.map(({ answered }) => answered), [[0], [0], [0]]);
  const alone = await made({ changes: { name: "__proto__" } });
  assert.equal(await alone.sender.report("a"), 0);
  alone.collector.answers = collectors[0].answers;
  await alone.sender.deliver();
  assert.equal(await alone.sender.report("a", { round: 1 }), null);
});

test("several campaigns under one limit: the sum of their losses is bounded", async () => {
  await assert.rejects(two(7), ParameterError);
  const { sender, one, other, storage, urls } = await two(8);
  await assert.rejects(sender.report("a"), StateError);
  await assert.rejects(sender.deliver(), StateError);
  await assert.rejects(sender.reportAll({ hours: "a", unknown: "b" }), ParameterError);
  await assert.rejects(sender.reportAll({ hours: "a", pages: "d" }), DomainError);
  assert.equal((await sender.status()).loss, 0, "all are queued, or none is");
  assert.deepEqual(await sender.reportAll({ hours: "a", pages: "b" }), { hours: 0, pages: 0 });
  assert.equal((await sender.status()).loss, 4);
  for (let round = 1; round < 6; round++) {
    const value = "abc"[round % 3];
    await sender.reportAll({ hours: value, pages: value }, { round });
  }
  const { loss, campaigns } = await sender.status();
  assert.deepEqual([loss, campaigns.map((each) => each.loss)], [8, [4, 4]]);
  const outcomes = await sender.deliverAll();
  assert.deepEqual(Object.keys(outcomes), ["hours", "pages"]);
  assert.equal(one.messages.length, outcomes.hours.sent.length);
  assert.equal(other.messages.length, outcomes.pages.sent.length);
  await sender.agree([...urls].reverse(), { limit: 16 });
  assert.equal((await sender.status()).limit, 16);
  await assert.rejects(sender.agree(urls[0]), CampaignError);
  await assert.rejects(sender.agree([urls[0], urls[0]]), ParameterError);
  await assert.rejects(sender.agree([]), ParameterError);
  assert.match(await sender.reset(), /the 8 spent so far stays spent/);
  assert.match(await sender.withdraw(), /the 8 spent so far stays spent/);
  assert.deepEqual(Object.keys(JSON.parse(await storage.read()).answered).length, 3);
});

test("a reset begins anew, with what was spent", async () => {
  const { sender, storage } = await made();
  await sender.report("a");
  const before = JSON.parse(await storage.read()).enrolments[0].client;
  assert.match(await sender.reset(), /2 spent so far stays spent/);
  const after = JSON.parse(await storage.read()).enrolments[0].client;
  assert.notEqual(after.secret, before.secret);
  const { loss, campaigns } = await sender.status();
  assert.deepEqual([loss, campaigns[0].waiting], [2, []]);
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
  assert.deepEqual((await other.status()).campaigns[0].waiting, []);
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
    const { limit, loss, campaigns: [{ answered, waiting }] } = await sender.status();
    assert.deepEqual([answered, waiting, limit, loss], [[0], [0], null, 2]);
  }
  full = false;
  assert.equal(await sender.report("c", { round: 1 }), 1);
  // Counted before, and settled now: the collector knows it by its pseudonym.
  assert.deepEqual((await sender.deliver()).sent, [0, 1]);
  assert.equal(new Set(collector.messages).size, 2);
});

/** What a page has that `deliverOnHide` listens to. */
function madePage() {
  const page = new EventTarget();
  page.document = Object.assign(new EventTarget(), { visibilityState: "visible" });
  page.become = (state) => {
    page.document.visibilityState = state;
    page.document.dispatchEvent(new Event("visibilitychange"));
  };
  return page;
}

/** Lets all that is under way come to an end. */
async function idle(storage) {
  for (let i = 0; i < 50; i++) {
    await storage.change(async () => undefined);
    // As slow as the digests of those that read it.
    await crypto.subtle.digest("SHA-256", new Uint8Array(1));
    await new Promise(setImmediate);
  }
}

test("a page that goes away sends its queue once, and settles what is answered", async () => {
  const { sender, collector, storage } = await made();
  const page = madePage();
  await sender.report("a");
  const stop = sender.deliverOnHide(page);
  await idle(storage);
  page.become("visible");
  assert.equal(collector.messages.length, 0);
  page.become("hidden");
  page.dispatchEvent(new Event("pagehide"));
  assert.equal(collector.messages.length, 1, "at once, without waiting for anything");
  const { url, keepalive } = collector.requests.at(-1);
  assert.deepEqual([url, keepalive], ["https://reports.example/v1/reports", true]);
  await idle(storage);
  assert.deepEqual((await sender.status()).campaigns[0].waiting, []);
  await sender.report("a", { round: 1 });
  stop();
  page.dispatchEvent(new Event("pagehide"));
  await idle(storage);
  assert.equal(collector.messages.length, 1);
  await sender.withdraw();
});

test("a worker, which never goes away like a page, learns to deliver itself", async () => {
  const { sender } = await made();
  // Node has no document either.
  for (const worker of [undefined, new EventTarget()]) {
    assert.throws(() => sender.deliverOnHide(worker), (error) => error instanceof StateError && /call deliver/.test(error.message));
  }
});

test("a page that goes away sends nothing that another sender has deleted", async () => {
  // Where a storage can be held, as the browser's can, and where a page can only ask it.
  const askedOnly = ({ read, change }) => ({ read, change });
  for (const kind of [(storage) => storage, askedOnly]) {
    for (const end of ["withdraw", "reset"]) {
      const storage = kind(memoryStorage());
      const { sender, collector, clock } = await made({ storage });
      const others = [1, 2].map(() => new Sender(storage, { clock: () => clock.now, fetch: collector.fetch }));
      const pages = [sender, ...others].map((one) => {
        const page = madePage();
        one.deliverOnHide(page);
        return page;
      });
      await sender.report("a");
      for (const one of others) await one.status();
      await idle(storage);
      await others[0][end]();
      for (const page of pages) page.become("hidden");
      for (const page of pages) page.dispatchEvent(new Event("pagehide"));
      await idle(storage);
      assert.deepEqual(collector.messages, [], end);
      // What is queued after that leaves with any of them.
      if (end === "withdraw") await others[0].agree(collector.url, { wait: false });
      for (const page of pages) page.become("visible");
      await others[1].report("b", { round: 5 });
      for (const one of [sender, ...others]) await one.status();
      await idle(storage);
      pages[0].become("hidden");
      await idle(storage);
      assert.deepEqual(collector.messages.map((message) => JSON.parse(message).round), [5], end);
      assert.deepEqual((await sender.status()).campaigns[0].waiting, []);
    }
  }
});

test("a page that comes back, as out of a cache of whole pages, acts on what is true by then", async () => {
  const { sender, collector, storage, clock } = await made();
  const other = new Sender(storage, { clock: () => clock.now, fetch: collector.fetch });
  const page = madePage();
  sender.deliverOnHide(page);
  collector.answers = [() => problem(503, "unavailable")];
  await sender.report("a");
  await idle(storage);
  page.dispatchEvent(new Event("pagehide"));
  page.become("hidden");
  await idle(storage);
  assert.equal(collector.messages.length, 1);
  // While it is frozen.
  await other.reset();
  clock.now += 60;
  page.dispatchEvent(new Event("pageshow"));
  page.become("visible");
  page.dispatchEvent(new Event("pagehide"));
  await idle(storage);
  assert.equal(collector.messages.length, 1);
});

test("who agrees in two pages at once answers no round twice", async () => {
  const { sender, collector, storage, clock } = await made({ agree: false });
  const other = new Sender(storage, {
    clock: () => clock.now,
    fetch: async (url, init) => {
      const answer = await collector.fetch(url, init);
      // While the document is on its way.
      await sender.agree(collector.url);
      await sender.report("a");
      await sender.deliver();
      await sender.withdraw();
      return answer;
    },
  });
  // The withdrawal came after this consent.
  await assert.rejects(other.agree(collector.url), StateError);
  await sender.agree(collector.url);
  await other.agree(collector.url);
  assert.equal(await other.report("b"), 0);
  assert.deepEqual((await other.status()).campaigns[0].waiting, []);
  assert.equal(collector.messages.length, 1);
});

test("who withdraws while a collector is asked is not enrolled", async () => {
  const { sender, collector, storage } = await made({ agree: false });
  const { fetch } = collector;
  const withdrawn = async (url, init) => {
    await slow.withdraw();
    return fetch(url, init);
  };
  // Nothing is there yet, so that the state itself shows nothing.
  const slow = new Sender(storage, { fetch: withdrawn });
  await assert.rejects(slow.agree(collector.url), StateError);
  assert.equal(await storage.read(), null);
  // Who agrees again, to what another page ends meanwhile.
  await sender.agree(collector.url);
  const { change } = storage;
  const ended = new Sender({
    ...storage,
    change: async (next) => {
      await sender.withdraw();
      return change(next);
    },
  });
  await assert.rejects(ended.agree(collector.url), StateError);
  assert.equal((await sender.status()).consent, false);
});

test("who agrees and withdraws in another page while a collector is asked is not enrolled", async () => {
  const { sender, collector, storage } = await made({ agree: false });
  const withdrawn = async (url, init) => {
    if (url.endsWith("/document")) {
      await sender.agree(collector.url);
      await sender.withdraw();
    }
    return collector.fetch(url, init);
  };
  // All that was ever agreed to has spent nothing: again and again the rest is as it was.
  for (let i = 0; i < 3; i++) {
    await assert.rejects(new Sender(storage, { fetch: withdrawn }).agree(collector.url), StateError);
    assert.equal((await sender.status()).consent, false);
  }
});

test("a page that goes away asks for little, and not again while the collector wants rest", async () => {
  const { sender, collector, clock, storage } = await made();
  for (let round = 0; round < 130; round++) await sender.report("a", { round });
  const page = madePage();
  sender.deliverOnHide(page);
  const posts = () => collector.requests.filter(({ keepalive }) => keepalive);
  const away = async () => {
    page.become("visible");
    await sender.status();
    page.become("hidden");
    page.dispatchEvent(new Event("pagehide"));
    await idle(storage);
    page.become("visible");
    return posts().length;
  };
  collector.answers = [() => problem(503, "unavailable", { "retry-after": "60" })];
  assert.equal(await away(), 1);
  assert.ok(posts()[0].body.length <= 65536, "what browsers let outlive a page");
  assert.equal(JSON.parse(posts()[0].body).length, 100);
  assert.deepEqual([await away(), await away()], [1, 1]);
  clock.now += 61;
  assert.equal(await away(), 2);
  clock.now += 61;
  collector.answers = [receipt];
  assert.deepEqual([await away(), (await sender.status()).campaigns[0].waiting.length], [3, 30]);
  assert.deepEqual((await sender.status()).campaigns[0].waiting[0], 100, "the oldest ones first");
  // What settles nothing is left alone as well.
  collector.answers = [() => Response.json({})];
  assert.deepEqual([await away(), await away()], [4, 4]);
});

test("nothing secret is printed", async () => {
  const { inspect } = await import("node:util");
  const { sender, storage } = await made();
  await sender.report("a");
  const { secret } = JSON.parse(await storage.read()).enrolments[0].client;
  const shown = inspect([sender, await sender.status()], { depth: 9, showHidden: false });
  assert.ok(!shown.includes(secret));
});
