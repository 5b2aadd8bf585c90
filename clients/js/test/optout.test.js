/** A browser that says that its user wants none of this: no consent, nothing kept, nothing sent. */

import assert from "node:assert/strict";
import test from "node:test";
import { ParameterError, Sender, StateError, memoryStorage } from "../src/index.js";
import { Collector, START, published } from "../testing/collector.js";

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
