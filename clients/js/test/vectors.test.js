/** The golden vectors of the Python suite, replayed whole. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { FAMILIES } from "../src/hashing.js";
import { Client, PROTOCOLS, ParameterError, Protocol, StateError } from "../src/index.js";
import { parse } from "../src/json.js";

const read = (name) =>
  parse(readFileSync(new URL(`../../../tests/vectors/${name}.json`, import.meta.url), "utf8"));

/** Draws from a list; each number must be in the range that its primitive has. */
class Script {
  constructor(draws) {
    this.draws = draws.map(Number);
    this.used = 0;
  }

  below(n) {
    const drawn = this.draws[this.used++];
    assert.ok(drawn >= 0 && drawn < n);
    return drawn;
  }

  bernoulli(threshold) {
    return this.below(2 ** 53) < threshold;
  }
}

/** As the vectors hold it: bits in hexadecimal, integers beyond 2^53 as text. */
function plain(part) {
  if (part instanceof Uint8Array) return Buffer.from(part).toString("hex");
  return typeof part === "bigint" && part >= 2n ** 53n ? String(part) : part;
}

test("every client's life is the one in the vectors", async (context) => {
  const vectors = [...read("clients"), ...read("tables")];
  for (const { protocol: spec, fingerprint, thresholds, draws, reports, loss } of vectors) {
    await context.test(`${spec.type} ${spec.hash ?? ""} ${spec.memo ?? ""}`, async () => {
      const protocol = new Protocol(spec);
      assert.equal(await protocol.fingerprint(), fingerprint);
      assert.deepEqual([protocol.first, protocol.second], thresholds);
      const script = new Script(draws);
      const client = new Client(protocol, { rng: script });
      for (const [round, v, key, y] of reports) {
        const report = client.report(v, round);
        assert.deepEqual([plain(report.key), plain(report.y)], [key, y]);
      }
      assert.equal(script.used, draws.length);
      assert.ok(Math.abs(client.loss - loss) <= 1e-12 * loss);
    });
  }
  assert.deepEqual(new Set(vectors.map(({ protocol }) => protocol.type)), new Set(PROTOCOLS));
});

test("a client that reports in one round of some does so in those of the vectors", () => {
  for (const { protocol, every, draws, reports, loss } of read("panels")) {
    const script = new Script(draws);
    const client = new Client(new Protocol(protocol), { rng: script, every });
    for (const [round, v, key, y] of reports) {
      assert.equal(client.isDue(round), y !== null);
      if (y === null) {
        assert.throws(() => client.report(v, round), StateError);
        continue;
      }
      const report = client.report(v, round);
      assert.deepEqual([plain(report.key), plain(report.y)], [key, y]);
    }
    assert.equal(script.used, draws.length);
    assert.ok(Math.abs(client.loss - loss) <= 1e-12 * loss);
  }
});

test("every hash is the one in the vectors", () => {
  for (const { family: name, g, k, values, symbols, refused } of read("hashes")) {
    const family = FAMILIES[name](k, g);
    const key = name === "affine" ? BigInt : Number;
    for (const [text, expected] of Object.entries(symbols)) {
      assert.ok(family.isKey(key(text)), `${name} ${g} ${k}`);
      assert.deepEqual(values.map((v) => family.memoIndex(key(text), v)), expected, `${name} ${g} ${k}`);
    }
    for (const text of refused) assert.ok(!family.isKey(key(text)), `${name} ${g} ${k} ${text}`);
  }
});

test("every threshold is the one in the vectors", () => {
  const vectors = read("thresholds");
  for (const { protocol: spec, thresholds } of vectors) {
    if (thresholds === null) {
      assert.throws(() => new Protocol(spec), ParameterError, JSON.stringify(spec));
    } else {
      const { first, second } = new Protocol(spec);
      assert.deepEqual([first, second], thresholds, JSON.stringify(spec));
    }
  }
  assert.ok(vectors.length > 1000);
});
