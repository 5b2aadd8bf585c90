/** A client's state: what was written is read, what no client can have written is refused, sealed or not. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Client, ParameterError, Protocol, Sender, StateError, memoryStorage } from "../src/index.js";
import { canonical, parse } from "../src/json.js";
import { sha256 } from "../src/number.js";
import { ledgerAfter, stateOf, textOf } from "../src/state.js";

const LONGITUDINAL = { version: 1, k: 5, eps_inf: 2, eps_1: 1 };
const HASHED = { ...LONGITUDINAL, type: "ololoha", g: 3, hash: "affine", calibration: "tight" };
const SPECS = [
  HASHED,
  { ...HASHED, memo: "joint" },
  { ...LONGITUDINAL, type: "rappor" },
  { type: "olh", version: 1, k: 5, eps: 1, g: 3, hash: "affine", calibration: "tight" },
];

/** A state with the checksum that belongs to it. */
async function sealed({ checksum, ...state }) {
  return canonical({ ...state, checksum: await sha256(canonical(state)) });
}

const twice = (rows) => [...rows, rows[0]];
const longer = ([row, ...rows]) => [[...row, 0], ...rows];

for (const spec of SPECS) {
  test(`states of ${spec.type} ${spec.memo ?? ""}`, async () => {
    const client = new Client(new Protocol(spec), { limit: 100 });
    for (const round of [0, 1, 7]) client.report(round % spec.k, round);
    const text = await client.save();
    const state = parse(text);
    assert.equal(await (await Client.load(text)).save(), text);
    assert.equal(await sealed(state), text);
    const changes = [
      { sent: twice(state.sent) },
      { sent: longer(state.sent) },
      { sent: state.sent.map(([round, key]) => [round, key, "zz"]) },
      { reports: 2 },
      { answered: [[0, 1]] },
      { secret: "zz".repeat(32) },
      { secret: `${state.secret}00` },
      { spent_before: -1 },
      { committed_before: -1 },
      { committed_before: "0" },
      { limit: 0 },
      { more: 1 },
    ];
    if (state.memo.length) {
      changes.push({ memo: twice(state.memo) }, { memo: longer(state.memo) }, { key: "1" }, { memo: [[99, 0]] });
    }
    if (spec.memo) changes.push(...[0, "", null, [], [0, 1], [0, 1, 3]].map((table) => ({ table })));
    for (const change of changes) {
      await assert.rejects(Client.load(await sealed({ ...state, ...change })), StateError, canonical(change));
    }
    for (const name of Object.keys(state)) {
      const { [name]: _, ...fewer } = state;
      await assert.rejects(Client.load(canonical(fewer)), StateError, name);
      // States of release 0.2.0 have no committed_before.
      if (!["checksum", "committed_before"].includes(name)) await assert.rejects(Client.load(await sealed(fewer)), StateError, name);
    }
  });
}

const vectors = parse(readFileSync(new URL("../../../tests/vectors/states.json", import.meta.url), "utf8"));

/** What is written of what was read. */
async function rewritten(text) {
  if (parse(text).type === "loloha-client") return (await Client.load(text)).save();
  return textOf(await stateOf(text));
}

test("what both languages wrote is written again whole, or refused", async () => {
  for (const { state, kept } of vectors) {
    const text = canonical(state);
    if (kept) assert.equal(await rewritten(text), await sealed(state));
    else await assert.rejects(rewritten(text), StateError, text);
  }
  assert.ok(vectors.filter(({ kept }) => !kept).length > 10);
});

test("a member that is not known is refused, not dropped", async () => {
  for (const { state } of vectors.filter(({ kept }) => kept)) {
    await assert.rejects(rewritten(await sealed({ ...state, a_later_member: [1] })), StateError);
    const [enrolment, ...others] = state.enrolments ?? [];
    if (!enrolment) continue;
    const { client } = enrolment;
    for (const change of [{ more: 1 }, { client: parse(await sealed({ ...client, more: 1 })) }]) {
      const enrolments = [{ ...enrolment, ...change }, ...others];
      await assert.rejects(rewritten(await sealed({ ...state, enrolments })), StateError);
    }
  }
});

test("agreements take the same limits in both languages, and leave the same", async () => {
  for (const { state, least, withdrawn } of vectors.filter((one) => one.least)) {
    const text = canonical(state);
    const urls = state.enrolments.map(({ url }) => url);
    const agree = (limit) => new Sender(memoryStorage(text)).agree(urls, { limit });
    await agree(least);
    await assert.rejects(agree(least - 0.5), ParameterError, text);
    const left = parse((await textOf(ledgerAfter(await stateOf(text)))) ?? "{}");
    const rounds = Object.entries(left.answered ?? {}).filter(([name, some]) => (name && some.length) || name in withdrawn.answered);
    const { checksum, ...plain } = { ...left, answered: Object.fromEntries(rounds) };
    assert.equal(canonical(plain), canonical(withdrawn));
  }
});
