/** What the client writes and reads has the form that the shipped schemas say. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Campaign, Client, PROTOCOLS, encode } from "../src/index.js";
import { canonical, parse } from "../src/json.js";
import { DOCUMENT, problem, receipt } from "../testing/collector.js";
import { isValid, schema } from "../testing/schema.js";

const vectors = parse(
  readFileSync(new URL("../../../tests/vectors/clients.json", import.meta.url), "utf8"),
);

test("documents, messages and states of every protocol are valid", async () => {
  const seen = new Set();
  for (const { protocol } of vectors) {
    const labels = Array.from({ length: protocol.k }, (_, v) => `label ${v}`);
    const campaign = await Campaign.restore({ ...DOCUMENT, protocol, labels });
    assert.ok(isValid(JSON.parse(canonical(campaign.plain)), schema("campaign")), protocol.type);
    const client = new Client(campaign.protocol, { limit: 100 });
    for (const round of [0, 1, 9]) {
      const report = client.report(round, round);
      const reporter = await client.reporter(round);
      const message = encode(campaign, report, { round, reporter, ticket: "0f".repeat(16) });
      assert.ok(isValid(JSON.parse(message), schema("report")), message);
    }
    assert.ok(isValid(parse(await client.save()), schema("client-state")), protocol.type);
    seen.add(protocol.type);
  }
  assert.deepEqual(seen, new Set(PROTOCOLS));
});

test("messages are what the vectors say: as written, valid or not", async () => {
  const all = JSON.parse(readFileSync(new URL("../../../tests/vectors/messages.json", import.meta.url), "utf8"));
  for (const { message, tried, ...one } of all) {
    const campaign = await Campaign.restore(one.campaign);
    const { encoding } = campaign.protocol;
    const key = typeof one.key === "number" && one.key > 2 ** 31 ? BigInt(one.key) : one.key;
    const report = { key, y: encoding.answerFrom(one.y) };
    assert.deepEqual(JSON.parse(encode(campaign, report, one)), JSON.parse(message));
    for (const { field, value, valid } of tried) {
      // What is undefined is left out.
      const changed = JSON.parse(JSON.stringify({ ...JSON.parse(message), [field]: value }));
      assert.equal(isValid(changed, schema("report")), valid, JSON.stringify(changed));
    }
  }
});

test("what tests take for a collector's answers is valid", async () => {
  for (const accepted of [0, 1]) assert.ok(isValid(await receipt("{}", accepted).json(), schema("receipt")));
  assert.ok(isValid(await problem(410, "late").json(), schema("problem")));
});

test("the validator sees what is wrong", () => {
  for (const changes of [{ version: 2 }, { keys: "both" }, { labels: [] }, { more: 1 }, { name: "" }, { other: null }, { round: { start: "now", seconds: 1 } }, { protocol: { ...DOCUMENT.protocol, eps_inf: 701 } }]) {
    assert.ok(!isValid({ ...DOCUMENT, ...changes }, schema("campaign")), JSON.stringify(changes));
  }
});
