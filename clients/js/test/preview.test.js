/** What would go, shown without drawing, keeping or sending anything. */

import assert from "node:assert/strict";
import test from "node:test";
import { explainPreview } from "../src/explain.js";
import { Campaign, ParameterError, Sender, StateError, memoryStorage } from "../src/index.js";
import { Collector, HOUR, START, published } from "../testing/collector.js";

async function made(changes = {}) {
  const { text, url } = await published(changes);
  const collector = new Collector({ text, url });
  const storage = memoryStorage();
  const clock = { now: START };
  const sender = new Sender(storage, { clock: () => clock.now, fetch: collector.fetch });
  return { collector, storage, sender, clock, campaign: await Campaign.read(text) };
}

/** All but the campaign, which is read anew each time. */
const plain = ({ campaign, ...preview }) => preview;

test("it is the report that goes", async () => {
  const { sender, collector, storage } = await made();
  await sender.agree(collector.url);
  await sender.report("a");
  const [kept, asked] = [await storage.read(), collector.requests.length];
  const waiting = await sender.preview();
  assert.deepEqual([waiting.kind, waiting.round, waiting.reason, waiting.url], ["queued", 0, "", collector.url]);
  assert.deepEqual(plain(await sender.preview()), plain(waiting));
  assert.deepEqual([await storage.read(), collector.requests.length], [kept, asked]);
  await sender.deliver();
  assert.deepEqual(collector.messages, [waiting.message]);
  assert.deepEqual(plain(await sender.preview()), { ...plain(waiting), kind: "answered" });
  assert.match(explainPreview(waiting), /this report waits/);
});

test("an example is of nobody", async () => {
  const { sender, collector, storage, clock } = await made();
  await sender.agree(collector.url);
  await sender.report("a");
  const kept = await storage.read();
  const own = await sender.preview();
  clock.now += HOUR;
  const reporters = new Set([JSON.parse(own.message).reporter]);
  for (let i = 0; i < 20; i++) {
    const { kind, round, reason, message } = await sender.preview();
    assert.deepEqual([kind, round, reason, message.length], ["example", 1, "", own.message.length]);
    reporters.add(JSON.parse(message).reporter);
  }
  assert.equal(reporters.size, 21);
  assert.equal(await storage.read(), kept);
  await sender.report("a");
  const { kind, message } = await sender.preview();
  assert.deepEqual([kind, JSON.parse(message).key], ["queued", JSON.parse(own.message).key]);
  await assert.rejects(sender.preview(undefined, { round: -1 }), ParameterError);
});

test("neither consent nor a campaign that has begun is needed, and no ticket is asked for", async () => {
  const { sender, collector, storage, clock, campaign } = await made({ keys: "assigned" });
  clock.now = START - 9 * HOUR;
  const { kind, round, reason, message } = await sender.preview(campaign);
  assert.deepEqual([kind, round, reason, JSON.parse(message).ticket], ["example", 0, "not-agreed", "0".repeat(32)]);
  await assert.rejects(sender.preview(), StateError);
  assert.deepEqual([await storage.read(), collector.requests], [null, []]);
});

test("it says why nothing goes", async () => {
  const protocol = { type: "grr", version: 1, k: 3, eps: 1 };
  const { sender, collector } = await made({ protocol });
  await sender.agree(collector.url, { limit: 1 });
  const why = async (round) => (await sender.preview(undefined, { round })).reason;
  assert.equal(await why(1), "");
  await sender.report("a");
  assert.equal(await why(1), "limit");
  process.env.DO_NOT_TRACK = "1";
  try {
    assert.equal(await why(1), "do-not-track");
    assert.equal(await why(0), "");
  } finally {
    delete process.env.DO_NOT_TRACK;
  }
});

test("a round whose report is forgotten, one of another panel, one past the end", async () => {
  const { sender, collector, clock } = await made();
  await sender.agree(collector.url);
  for (let round = 0; round < 70; round++) await sender.report("a", { round });
  await sender.deliver();
  const { kind, reason } = await sender.preview();
  assert.deepEqual([kind, reason], ["example", "answered"]);
  const round = { start: "2026-01-01T00:00:00Z", seconds: HOUR, every: 2 };
  const other = await made({ round });
  await other.sender.agree(other.collector.url);
  const reasons = await Promise.all([0, 1].map(async (round) => (await other.sender.preview(undefined, { round })).reason));
  assert.deepEqual(reasons.sort(), ["", "not-due"]);
  const ending = await made({ round: { start: round.start, seconds: HOUR, expires: "2026-01-01T02:00:00Z" } });
  await ending.sender.agree(ending.collector.url);
  ending.clock.now = clock.now + 3 * HOUR;
  assert.equal((await ending.sender.preview()).reason, "expired");
});
