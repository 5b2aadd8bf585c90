/** A device whose campaign is paused or has ended: it drops what waits, and draws nothing more. */

import assert from "node:assert/strict";
import test from "node:test";
import { CampaignError, Sender, memoryStorage } from "../src/index.js";
import { Collector, HOUR, START, problem, published, receipt } from "../testing/collector.js";

const halt = (campaign, status = 410, kind = "late") => (message) => problem(status, kind, {}, message, { campaign });
const is = (state) => () => Response.json({ state });

async function made(answers = [receipt], changes = {}) {
  const collector = new Collector(await published(changes));
  collector.answers = answers;
  const storage = memoryStorage();
  const clock = { now: START };
  const open = () => new Sender(storage, { clock: () => clock.now, fetch: collector.fetch, sleep: async () => {}, attempts: 1 });
  const sender = open();
  await sender.agree(collector.url);
  return { sender, collector, storage, clock, open };
}

for (const said of ["paused", "ended"]) {
  test(`told that it is ${said} it drops what waits and draws nothing`, async () => {
    const { sender, collector, storage, open } = await made([halt(said)]);
    collector.state = is("paused");
    for (const round of [0, 1, 2]) await sender.report("a", { round });
    const { refused, ...outcome } = await sender.deliver();
    assert.deepEqual(outcome, { sent: [], waiting: [], reason: "", campaign: said });
    assert.deepEqual(refused, { 0: "it is late", 1: "it is late", 2: "it is late" });
    assert.equal(collector.messages.length, 1);
    const kept = await storage.read();
    assert.equal(JSON.parse(kept).enrolments[0].halted, said);
    const { loss } = await sender.status();
    // It outlives the page, and a reset.
    for (const one of [sender, open()]) {
      assert.deepEqual([await one.report("c", { round: 3 }), await one.report("a", { round: 0 })], [null, null]);
      assert.equal((await one.deliver()).campaign, said);
    }
    assert.equal(await storage.read(), kept);
    assert.equal((await sender.status()).loss, loss);
    await sender.reset();
    assert.equal(await sender.report("c", { round: 3 }), null);
    // Nobody asks about one that has ended.
    const asked = collector.requests.filter(({ url }) => url === collector.url).length;
    assert.equal(asked, said === "paused" ? 3 : 1);
    // A new consent is to a campaign that may be open.
    await sender.withdraw();
    await sender.agree(collector.url);
    assert.equal(await sender.report("c", { round: 9 }), 9);
  });
}

test("a paused one goes on when it is resumed, and ends when it ends", async () => {
  const { sender, collector, storage, clock } = await made([halt("paused"), receipt, halt("paused")]);
  await sender.report("a");
  await sender.deliver();
  clock.now += HOUR;
  assert.equal(await sender.report("a"), null);
  const before = await storage.read();
  const strange = [
    () => Promise.reject(new TypeError()),
    () => new Response("<html>"),
    () => new Response("null"),
    is("constructor"),
    is(["closed"]),
    is("paused"),
    () => Response.json({ state: "open" }, { status: 404 }),
  ];
  for (const state of strange) {
    collector.state = state;
    assert.equal((await sender.deliver()).campaign, "paused", String(state));
    assert.equal(await storage.read(), before);
    // A collector that did not answer is left alone for a while.
    clock.now += HOUR;
  }
  collector.state = is("open");
  assert.equal((await sender.deliver()).campaign, "open");
  assert.ok(!("halted" in JSON.parse(await storage.read()).enrolments[0]));
  const round = await sender.report("a");
  assert.deepEqual((await sender.deliver()).sent, [round]);
  for (const state of ["closed", "archived", "deleting", "deleted"]) {
    const other = await made([halt("paused")]);
    await other.sender.report("a");
    await other.sender.deliver();
    other.collector.state = is(state);
    assert.equal((await other.sender.deliver()).campaign, "ended");
  }
});

test("nobody agrees to what its collector has closed, and no key is asked for", async () => {
  for (const state of ["closed", "archived", "deleting", "deleted", "paused", "open", undefined]) {
    const campaign = await published({ keys: "assigned" });
    const collector = new Collector(campaign);
    collector.state = () => Response.json({ state });
    const sender = new Sender(memoryStorage(), { fetch: collector.fetch, clock: () => START });
    const goesOn = !["closed", "archived", "deleting", "deleted"].includes(state);
    if (goesOn) await sender.agree(campaign.url);
    else await assert.rejects(sender.agree(campaign.url), /must not have ended/);
    assert.equal((await sender.status()).consent, goesOn);
    assert.equal(collector.requests.filter(({ url }) => url.endsWith("/keys")).length, Number(goesOn));
  }
});

test("only the final refusal of its own report, in these words, halts it", async () => {
  const other = JSON.stringify({ reporter: "0".repeat(32) });
  for (const answer of [
    halt("open"),
    halt(["ended"]),
    halt("constructor"),
    halt("ended", 425, "early"),
    () => halt("ended")(other),
    (message) => Response.json({ accepted: 1, duplicates: 0, refused: [], campaign: "ended", reporter: JSON.parse(message).reporter }),
  ]) {
    const { sender, storage } = await made([answer]);
    await sender.report("a");
    assert.equal((await sender.deliver()).campaign, "open");
    assert.ok(!("halted" in JSON.parse(await storage.read()).enrolments[0]));
  }
});

test("what is stored decides, whichever tab was told", async () => {
  const { sender, collector, open } = await made();
  for (const round of [0, 1, 2]) await sender.report("a", { round });
  const other = open();
  collector.answers = [
    // Another tab is told of the end while this one waits for an answer.
    async (message) => {
      assert.equal((await other.deliver()).campaign, "ended");
      return halt("paused")(message);
    },
    halt("ended"),
  ];
  const { sent, waiting, campaign } = await sender.deliver();
  assert.deepEqual([sent, waiting, campaign], [[], [], "ended"]);
  assert.equal(collector.messages.length, 2);
  // A slow answer about a pause does not open again what has ended meanwhile.
  const second = await made([halt("paused")]);
  await second.sender.report("a");
  await second.sender.deliver();
  second.collector.state = async () => {
    second.collector.state = is("closed");
    assert.equal((await second.open().deliver()).campaign, "ended");
    return Response.json({ state: "open" });
  };
  assert.equal((await second.sender.deliver()).campaign, "ended");
});

test("what is withdrawn meanwhile stays withdrawn", async () => {
  const { sender, collector, storage } = await made();
  for (const round of [0, 1]) await sender.report("a", { round });
  collector.answers = [
    async (message) => {
      await sender.withdraw();
      return halt("ended")(message);
    },
  ];
  const { waiting } = await sender.deliver();
  assert.deepEqual(waiting, []);
  assert.ok(!(await storage.read()).includes("halted"));
});

test("a page that goes away is told, too", async () => {
  const { sender, collector, storage } = await made([halt("ended")]);
  for (const round of [0, 1]) await sender.report("a", { round });
  const page = new EventTarget();
  page.document = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const end = sender.deliverOnHide(page);
  page.dispatchEvent(new Event("pagehide"));
  // For as long as a slow machine needs.
  for (let i = 0; i < 1000 && !(await storage.read()).includes("halted"); i++) await new Promise((done) => setTimeout(done, 5));
  end();
  const [{ queue, halted }] = JSON.parse(await storage.read()).enrolments;
  assert.deepEqual([queue, halted], [[], "ended"]);
  assert.equal(collector.messages.length, 2);
});

const UNTIL = { round: { start: "2026-01-01T00:00:00Z", seconds: HOUR, expires: "2026-01-01T02:30:00Z" } };

test("from its end date on it draws nothing, sends nothing, and drops what waits", async () => {
  const { sender, collector, storage, clock } = await made([receipt], UNTIL);
  const { start, expires } = (await sender.status()).campaigns[0].campaign.schedule;
  assert.equal(expires, start + 2.5 * HOUR);
  assert.equal(await sender.report("a", { round: 2 }), 2);
  // A round that begins after the end is none.
  assert.equal(await sender.report("a", { round: 3 }), null);
  clock.now = expires - 1;
  assert.deepEqual((await sender.deliver()).sent, [2]);
  await sender.report("b", { round: 1 });
  const sent = collector.messages.length;
  const { loss } = await sender.status();
  clock.now = expires;
  assert.equal(await sender.report("c", { round: 0 }), null);
  const outcome = await sender.deliver();
  assert.deepEqual([outcome.campaign, outcome.sent, outcome.waiting], ["ended", [], []]);
  assert.deepEqual(Object.keys(outcome.refused), ["1"]);
  assert.equal(collector.messages.length, sent);
  assert.equal((await sender.status()).loss, loss);
  assert.ok(!("halted" in JSON.parse(await storage.read()).enrolments[0]));
  // A clock that was ahead is set right.
  clock.now = start;
  assert.equal(await sender.report("c", { round: 0 }), 0);
  await sender.withdraw();
  clock.now = expires;
  await assert.rejects(sender.agree(collector.url), CampaignError);
});

test("a late answer to what was deleted drops nothing of who agreed again", async () => {
  const { sender, collector, open } = await made();
  await sender.report("a");
  const other = open();
  collector.answers = [
    async (message) => {
      await other.withdraw();
      await other.agree(collector.url);
      await other.report("b", { round: 1 });
      return halt("paused")(message);
    },
    receipt,
  ];
  await sender.deliver();
  const [{ waiting }] = (await other.status()).campaigns;
  assert.deepEqual(waiting, [1]);
  assert.deepEqual((await other.deliver()).sent, [1]);
});
