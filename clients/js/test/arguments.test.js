/** Every entry of the library, by every kind of wrong argument: a typed error that says what must be, and nothing changed. */

import assert from "node:assert/strict";
import test from "node:test";
import { explainAll, explainPreview } from "../src/explain.js";
import * as library from "../src/node.js";
import { Collector, DOCUMENT, START, published } from "../testing/collector.js";

const { Campaign, Client, LolohaError, Protocol, SecureRng, Sender, encode, memoryStorage } = library;

// What a page has; nothing of it is called.
globalThis.indexedDB = {};
Object.defineProperty(globalThis, "navigator", { value: { locks: {} }, configurable: true });

/** Whose members and texts cannot be read. */
const hostile = new Proxy(
  {},
  {
    get() {
      throw new TypeError("hostile");
    },
    ownKeys() {
      throw new TypeError("hostile");
    },
  },
);
const WRONG = Object.entries({
  undefined, null: null, zero: 0, negative: -1, NaN, bigint: 1n, empty: "", text: "x", true: true, symbol: Symbol("s"), list: [], one: [1], nested: [[]],
  object: {}, member: { a: 1 }, call: () => {}, date: new Date(NaN), hostile,
});

/** A campaign, a client of it, a sender that has agreed to it, and arguments that are right for each of their entries. */
async function made(protocol = DOCUMENT.protocol) {
  const site = await published({ protocol });
  const campaign = await Campaign.read(site.text);
  const collector = new Collector(site);
  const storage = memoryStorage();
  const options = { clock: () => START, fetch: collector.fetch, sleep: async () => {}, attempts: 1 };
  const sender = new Sender(storage, options);
  await sender.agree(site.url);
  const rules = campaign.protocol;
  const client = new Client(rules);
  const report = client.report(0, 0);
  const reporter = await client.reporter(0);
  const saved = await client.save();
  const page = { document: { addEventListener() {}, visibilityState: "visible" }, addEventListener() {} };
  const preview = await sender.preview();
  const round = { round: 0 };
  const agreed = async (...all) => {
    const one = new Sender(...(all.length ? all : [memoryStorage(), options]));
    await one.agree(site.url);
    return one;
  };
  const used = async (...all) => {
    const one = await agreed(...all);
    await one.report("a");
    return one.deliver();
  };
  return {
    state: async () => [await storage.read(), await client.save()],
    entries: {
      "Campaign.read": [(...all) => Campaign.read(...all), [site.text, campaign.fingerprint]],
      "Campaign.index": [(...all) => campaign.index(...all), ["a"]],
      "Campaign.roundAt": [(...all) => campaign.roundAt(...all), [START]],
      Client: [(...all) => new Client(...all), [rules, { limit: 9, key: null, rng: undefined, every: 1, account: { spent: 0 } }]],
      "Client.load": [(...all) => Client.load(...all), [saved, { protocol: rules }]],
      "Client.report": [(...all) => client.report(...all), [0, 0]],
      "Client.isDue": [(...all) => client.isDue(...all), [0]],
      "Client.hasAnswered": [(...all) => client.hasAnswered(...all), [0]],
      "Client.reporter": [(...all) => client.reporter(...all), [0]],
      "Client.setLimit": [(...all) => new Client(rules).setLimit(...all), [9]],
      "Client.reset": [(...all) => new Client(rules).reset(...all), [{ wait: true }]],
      "Client.save": [() => client.save(), []],
      Protocol: [(...all) => new Protocol(...all), [rules.spec]],
      "Protocol.fingerprint": [() => rules.fingerprint(), []],
      SecureRng: [() => new SecureRng(), []],
      "SecureRng.bernoulli": [(...all) => new SecureRng().bernoulli(...all), [1]],
      "SecureRng.below": [(...all) => new SecureRng().below(...all), [2]],
      encode: [encode, [campaign, report, { round: 0, reporter }]],
      Sender: [used, [memoryStorage(), { ...options, first: 1, longest: 1, timeout: 1 }]],
      "Sender.status": [() => sender.status(), []],
      "Sender.agree": [(...all) => new Sender(memoryStorage(), options).agree(...all), [site.url, { limit: null, token: null, wait: true }]],
      "Sender.decline": [(...all) => sender.decline(...all), [site.url, { token: null }]],
      "Sender.withdraw": [async () => (await agreed()).withdraw(), []],
      "Sender.report": [(...all) => sender.report(...all), ["a", round]],
      "Sender.reportAll": [(...all) => sender.reportAll(...all), [{ hours: "a" }, round]],
      "Sender.preview": [(...all) => sender.preview(...all), [campaign, round]],
      "Sender.deliver": [() => new Sender(storage, options).deliver(), []],
      "Sender.deliverAll": [() => new Sender(storage, options).deliverAll(), []],
      "Sender.deliverOnHide": [(...all) => sender.deliverOnHide(...all)(), [page]],
      "Sender.reset": [async (...all) => (await agreed()).reset(...all), [{ wait: true }]],
      memoryStorage: [(...all) => new Sender(memoryStorage(...all)).status(), [null]],
      indexedDbStorage: [(...all) => library.indexedDbStorage(...all), ["x", { timeout: 1 }]],
      fileStorage: [(...all) => new Sender(library.fileStorage(...all)).status(), [new URL("absent", import.meta.url).pathname]],
      explainAll: [explainAll, [[campaign], { limit: 9, after: [campaign] }]],
      explainPreview: [explainPreview, [preview]],
    },
  };
}

/** Not in the declarations: what others of these modules call. */
const INNER = ["Campaign", "Campaign.restore", "Campaign.takes", "Client.restore", "Client.plain", "Protocol.spentBy", "Protocol.drawTable"];

/** Names of what the library gives, and of the methods of its classes. */
function* entriesOf(exported) {
  for (const [name, entry] of Object.entries(exported)) {
    if (typeof entry !== "function" || entry === LolohaError || entry.prototype instanceof LolohaError) continue;
    yield name;
    const isMethod = ([one, { value }]) => one !== "constructor" && typeof value === "function";
    const methodsOf = (of) => Object.entries(Object.getOwnPropertyDescriptors(of)).filter(isMethod);
    for (const [one] of methodsOf(entry.prototype ?? {})) yield `${name}.${one}`;
    for (const [one] of methodsOf(entry)) if (!["prototype"].includes(one)) yield `${name}.${one}`;
  }
}

test("every entry is tried", async () => {
  const { entries } = await made();
  const names = [...entriesOf({ ...library, explainAll, explainPreview })].filter((name) => !INNER.includes(name));
  assert.deepEqual(names.filter((name) => !(name in entries)), []);
  assert.deepEqual(Object.keys(entries).filter((name) => !names.includes(name)), []);
});

/** A wrong argument in each place, and as each option of the right ones. */
function* wrongOf(right) {
  for (const [place, one] of right.entries()) {
    const isPlain = Object(one) === one && Object.getPrototypeOf(one) === Object.prototype;
    for (const [kind, wrong] of WRONG) {
      yield [`${place}: ${kind}`, Object.assign([...right], { [place]: wrong })];
      for (const member of isPlain ? Object.keys(one) : []) {
        yield [`${place}.${member}: ${kind}`, Object.assign([...right], { [place]: { ...one, [member]: wrong } })];
      }
    }
  }
}

for (const protocol of [{}, { type: "dbitflippm", b: 3, d: 2, hash: undefined, eps_1: undefined }]) {
  test(`a wrong argument is an error of the library, and changes nothing: ${JSON.stringify(protocol)}`, async () => {
    const given = Object.fromEntries(Object.entries({ ...DOCUMENT.protocol, ...protocol }).filter(([, one]) => one !== undefined));
    const { entries, state } = await made(given);
    const faults = [];
    for (const [name, [call, right]] of Object.entries(entries)) {
      await call(...right);
      let before = String(await state());
      for (const [where, wrong] of wrongOf(right)) {
        try {
          await call(...wrong);
          before = String(await state());
          continue;
        } catch (error) {
          const isOurs = error instanceof LolohaError && / must /.test(error.message);
          if (!isOurs) faults.push(`${name} ${where}: ${error}`);
        }
        if (before !== String(await state())) faults.push(`${name} ${where}: another state`);
      }
    }
    assert.deepEqual(faults, []);
  });
}
