/** The one file for pages is the client: same names, same draws, same messages. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import * as built from "../loloha.min.js";
import * as source from "../src/index.js";
import { canonical } from "../src/json.js";
import { Collector, DOCUMENT, START, published } from "../testing/collector.js";

const vectors = JSON.parse(
  readFileSync(new URL("../../../tests/vectors/clients.json", import.meta.url), "utf8"),
);

/** Messages and loss of a life with draws that are always the same. */
async function life({ Campaign, Client, encode }, protocol) {
  const labels = Array.from({ length: protocol.k }, (_, v) => `label ${v}`);
  const campaign = await Campaign.read(canonical({ ...DOCUMENT, protocol, labels }));
  const rng = { bernoulli: (threshold) => threshold > 2 ** 52, below: (n) => n - 1 };
  const client = new Client(campaign.protocol, { rng });
  const reports = [0, 1, 2].map((round) => client.report(round % protocol.k, round));
  return [reports.map((report, round) => encode(campaign, report, { round, reporter: "" })), client.loss];
}

test("it gives the same names", () => {
  assert.deepEqual(Object.keys(built), Object.keys(source));
  assert.equal(new built.StateError("x").name, "StateError");
});

test("its reports are the same", async () => {
  for (const { protocol } of vectors) {
    assert.deepEqual(await life(built, protocol), await life(source, protocol), protocol.type);
  }
});

test("each goes on with the state of the other", async () => {
  const collector = new Collector(await published());
  const storage = source.memoryStorage();
  const sender = ({ Sender }) => new Sender(storage, { clock: () => START + 60, fetch: collector.fetch });
  await sender(built).agree(collector.url, { limit: 9 });
  for (const [round, one] of [source, built, source, built].entries()) {
    assert.equal(await sender(one).report("a", { round }), round);
    const { sent, waiting } = await sender(one).deliver();
    assert.deepEqual([sent, waiting], [[round], []]);
  }
  await sender(built).withdraw();
  assert.deepEqual(Object.keys(JSON.parse(await storage.read())), ["answered", "checksum", "committed", "spent", "type", "version"]);
  assert.ok((await sender(source).status()).loss > 0);
});
