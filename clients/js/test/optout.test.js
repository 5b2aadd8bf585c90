/** A browser, or an environment, that says that its user wants none of this: no consent, nothing kept, nothing sent. */

import assert from "node:assert/strict";
import test from "node:test";
import { ParameterError, Sender, StateError, memoryStorage } from "../src/index.js";
import { Collector, START, problem, published } from "../testing/collector.js";

async function made(navigator) {
  Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true, writable: true });
  const collector = new Collector(await published());
  const storage = memoryStorage();
  return { collector, storage, sender: new Sender(storage, { clock: () => START, fetch: collector.fetch }) };
}

for (const navigator of [{ globalPrivacyControl: true }, { doNotTrack: "1" }, { globalPrivacyControl: false, doNotTrack: "1" }]) {
  test(`${JSON.stringify(navigator)} is an opt-out`, async () => {
    const { sender, collector, storage } = await made(navigator);
    await assert.rejects(sender.agree("x"), ParameterError);
    assert.equal(await sender.agree(collector.url, { limit: 99, token: "a" }), null);
    const { consent, optedOut } = await sender.status();
    assert.deepEqual([consent, optedOut], [false, true]);
    await assert.rejects(sender.report("a"), StateError);
    assert.deepEqual([await storage.read(), collector.requests.length], [null, 0]);
  });
}

test("nothing else is one", async () => {
  const others = [undefined, {}, { globalPrivacyControl: "true" }, { doNotTrack: "0" }, { doNotTrack: null }, { doNotTrack: "unspecified" }];
  for (const navigator of others) {
    const { sender, collector } = await made(navigator);
    assert.equal((await sender.agree(collector.url)).name, "hours");
    assert.equal((await sender.status()).optedOut, false);
  }
});

test("who had agreed before has agreed, until they withdraw", async () => {
  const { sender, collector } = await made({});
  await sender.agree(collector.url);
  globalThis.navigator = { globalPrivacyControl: true };
  assert.equal((await sender.agree(collector.url, { limit: 99 })).name, "hours");
  assert.equal(await sender.report("a"), 0);
  assert.deepEqual((await sender.deliver()).sent, [0]);
  await sender.withdraw();
  assert.equal(await sender.agree(collector.url), null);
});

test("DO_NOT_TRACK silences a program, also who had agreed before, and deletes nothing", async () => {
  const { sender, collector, storage } = await made({});
  const silenced = (text) => Object.assign(process.env, { DO_NOT_TRACK: text });
  try {
    for (const text of ["1", "true", " yes ", "no"]) {
      silenced(text);
      assert.equal(await sender.agree(collector.url), null);
      const { consent, optedOut } = await sender.status();
      assert.deepEqual([consent, optedOut, await storage.read(), collector.requests], [false, true, null, []]);
    }
    for (const text of ["", " ", "0", "false", "False"]) {
      silenced(text);
      assert.equal((await sender.agree(collector.url)).name, "hours");
    }
    assert.equal(await sender.report("a"), 0);
    const [kept, asked] = [await storage.read(), collector.requests.length];
    silenced("1");
    assert.equal(await sender.agree(collector.url, { limit: 99 }), null);
    assert.equal(await sender.report("b", { round: 1 }), null);
    assert.deepEqual(await sender.reportAll({ hours: "b" }, { round: 1 }), { hours: null });
    const delivery = await sender.deliver();
    assert.deepEqual([delivery.sent, delivery.waiting, delivery.campaign], [[], [0], "open"]);
    assert.match(delivery.reason, /DO_NOT_TRACK is set/);
    assert.deepEqual(await sender.deliverAll(), { hours: delivery });
    const page = { document: { visibilityState: "hidden", addEventListener() {} }, addEventListener() {} };
    sender.deliverOnHide(page)();
    await new Promise((done) => setTimeout(done, 20));
    assert.deepEqual([await storage.read(), collector.requests.length], [kept, asked]);
    await sender.withdraw();
  } finally {
    delete process.env.DO_NOT_TRACK;
  }
});

test("an opt-out is counted by one request that names nobody, and never where one wants none", async () => {
  const { sender, collector, storage } = await made({});
  const answers = [() => new Response(null, { status: 204 }), () => problem(503, "unavailable"), () => Promise.reject(new TypeError())];
  const asked = [];
  const one = new Sender(storage, { fetch: async (url, init) => (asked.push({ url, ...init }), answers[asked.length - 1]()) });
  assert.equal(await one.decline(collector.url, { token: "a" }), true);
  const [{ url, method, body, headers, credentials }] = asked;
  assert.deepEqual([url, method, body, credentials], [`${collector.url}/opt-outs`, "POST", "", "omit"]);
  assert.equal(headers.Authorization, "Bearer a");
  assert.deepEqual([await one.decline(collector.url), await one.decline(collector.url), asked.length], [false, false, 3]);
  await assert.rejects(one.decline("x"), ParameterError);
  globalThis.navigator = { globalPrivacyControl: true };
  assert.equal(await one.decline(collector.url), false);
  globalThis.navigator = {};
  process.env.DO_NOT_TRACK = "1";
  assert.equal(await one.decline(collector.url), false);
  delete process.env.DO_NOT_TRACK;
  assert.deepEqual([asked.length, await storage.read(), (await sender.status()).consent], [3, null, false]);
});

test("a paused campaign is not asked about where DO_NOT_TRACK is set", async () => {
  const { sender, collector } = await made({});
  await sender.agree(collector.url);
  await sender.report("a");
  collector.answers = [(message) => problem(410, "late", {}, message, { campaign: "paused" })];
  assert.equal((await sender.deliver()).campaign, "paused");
  const asked = collector.requests.length;
  process.env.DO_NOT_TRACK = "1";
  try {
    assert.equal((await sender.deliver()).campaign, "paused");
    assert.equal(collector.requests.length, asked);
  } finally {
    delete process.env.DO_NOT_TRACK;
  }
});
