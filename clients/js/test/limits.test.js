/** A limit is held against all that can be spent, at enrolment, and never speaks: the vectors of both languages. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { BudgetError, Client, DomainError, ParameterError, Protocol, Sender, memoryStorage } from "../src/index.js";
import { canonical, parse } from "../src/json.js";
import { checkLimit, claimOf } from "../src/limit.js";
import { Collector, START, published, sealed } from "../testing/collector.js";

const vectors = parse(readFileSync(new URL("../../../tests/vectors/limits.json", import.meta.url), "utf8"));

/** Whether an act is refused for the limit. */
function isRefused(act, Kind) {
  try {
    act();
    return false;
  } catch (error) {
    assert.ok(error instanceof Kind, error);
    return true;
  }
}

test("who may enrol under a limit", () => {
  const enrolments = vectors.filter((one) => "fits" in one);
  for (const { protocols, committed_before, limit, fits } of enrolments) {
    const all = protocols.map((spec) => new Protocol(spec));
    const seen = !isRefused(() => checkLimit(limit, committed_before, all.map(claimOf)), ParameterError);
    assert.equal(seen, fits, `${limit} after ${committed_before}: ${JSON.stringify(protocols)}`);
    if (all.length > 1) continue;
    const [protocol] = all;
    const account = { spent: 0, committed: committed_before };
    assert.equal(isRefused(() => new Client(protocol, { limit, account }), ParameterError), !fits);
  }
  assert.ok(enrolments.length > 30);
});

test("one-round rules end after a number of reports that no value changes", () => {
  for (const { protocol, limit, reports } of vectors.filter((one) => "reports" in one && one.protocol)) {
    for (const valueOf of [() => 0, (round) => round % protocol.k, () => Math.floor(Math.random() * protocol.k)]) {
      const client = new Client(new Protocol(protocol), { limit });
      let made = 0;
      while (made < 100 && !isRefused(() => client.report(valueOf(made), made), BudgetError)) made += 1;
      assert.equal(made, reports, `${limit}: ${JSON.stringify(protocol)}`);
    }
  }
});

test("states, of release 0.2.0 too, report or ask for consent anew", async () => {
  const states = vectors.filter((one) => one.state);
  for (const { state, reports, resets } of states) {
    const text = canonical(state);
    const client = async () => Client.load(text);
    const [reporting, resetting] = [await client(), await client()];
    assert.equal(!isRefused(() => reporting.report(0, 900), BudgetError), reports, text);
    assert.equal(!isRefused(() => resetting.reset(), BudgetError), resets, text);
    if (reports) continue;
    // Nothing is lost, and another limit, or none, ends it.
    assert.equal((await Client.load(await reporting.save())).loss, reporting.loss);
    reporting.setLimit(99);
    reporting.report(0, 900);
    resetting.setLimit(null);
    resetting.reset();
  }
  assert.ok(states.length > 15);
});

/** All sequences of so many values below k. */
const sequences = (k, length) =>
  length === 0 ? [[]] : sequences(k, length - 1).flatMap((one) => [...Array(k).keys()].map((v) => [...one, v]));

test("whether a client reports depends on no value", () => {
  const longitudinal = { type: "biloloha", version: 1, k: 2, eps_inf: 1, eps_1: 0.5, calibration: "tight", hash: "linear" };
  for (const [spec, limits] of [
    [longitudinal, [2, 3]],
    [{ ...longitudinal, type: "l-grr", k: 3, hash: undefined }, [3]],
    [{ type: "grr", version: 1, k: 3, eps: 1 }, [1, 2, 3]],
  ]) {
    const protocol = new Protocol(JSON.parse(JSON.stringify(spec)));
    for (const limit of limits) {
      const patterns = sequences(protocol.k, 5).map((values) => {
        const client = new Client(protocol, { limit, key: protocol.longitudinal && spec.hash ? 1 : null });
        return values.map((v, round) => !isRefused(() => client.report(v, round), BudgetError)).join();
      });
      assert.equal(new Set(patterns).size, 1, spec.type);
      if (protocol.longitudinal) assert.ok(!patterns[0].includes("false"));
    }
    const [least] = limits;
    assert.ok(isRefused(() => new Client(protocol, { limit: least - 0.001 }), ParameterError));
  }
});

test("a refusal says what is needed, and what would fit", () => {
  const joint = { type: "ololoha", version: 1, k: 20, eps_inf: 2, eps_1: 1, calibration: "tight", hash: "linear", g: 3 };
  for (const [limit, said] of [
    [5, ["cover 6", "BiLOLOHA (cap 4)", "one joint memo (cap 3.4"]],
    [3.5, ["cover 6", "one joint memo (cap 3.4"]],
    [1, ["cover 6", "use a larger one"]],
  ]) {
    assert.throws(
      () => new Client(new Protocol(joint), { limit }),
      ({ message }) => said.every((part) => message.includes(part)),
      said,
    );
  }
});

async function made(changes) {
  const collector = new Collector(await published(changes));
  const storage = memoryStorage();
  const sender = new Sender(storage, { clock: () => START, fetch: collector.fetch });
  return { collector, storage, sender };
}

test("resets, withdrawals and new agreements commit their caps", async () => {
  const { sender, collector, storage } = await made();
  await assert.rejects(sender.agree(collector.url, { limit: 3.9 }), ParameterError);
  assert.equal(await storage.read(), null, "nothing is kept");
  await sender.agree(collector.url, { limit: 8 });
  for (const [round, value] of [..."abcabc"].entries()) assert.equal(await sender.report(value, { round }), round);
  await sender.reset();
  await assert.rejects(sender.reset(), BudgetError);
  assert.equal(await sender.report("a", { round: 6 }), 6);
  await sender.withdraw();
  await assert.rejects(sender.agree(collector.url, { limit: 11 }), ParameterError);
  assert.equal((await sender.status()).consent, false);
  await sender.agree(collector.url, { limit: 12 });
  await assert.rejects(sender.agree(collector.url, { limit: 11 }), ParameterError);
  await assert.rejects(sender.reset(), BudgetError);
  await sender.agree(collector.url, { limit: 16 });
  await sender.reset();
  assert.equal(await sender.report("a", { round: 9 }), 9);
});

test("a state of release 0.2.0 with a smaller limit reports no more until the user agrees anew", async () => {
  const { sender, collector, storage } = await made();
  await sender.agree(collector.url);
  await sender.report("a");
  const state = parse(await storage.read());
  for (const [spent_before, limit, isEnough] of [[0, 3, false], [0, 4, true], [2, 8, false], [2, null, true]]) {
    const { committed_before, checksum: without, ...old } = { ...state, limit, spent_before };
    const [enrolment] = old.enrolments;
    const { committed_before: _, ...client } = enrolment.client;
    old.enrolments = [{ ...enrolment, client: parse(await sealed(client)) }];
    const again = new Sender(memoryStorage(canonical(old)), { clock: () => START, fetch: collector.fetch });
    const report = again.report("b", { round: 1 });
    if (isEnough) assert.equal(await report, 1);
    else {
      await assert.rejects(report, BudgetError);
      await assert.rejects(again.reset(), BudgetError);
      assert.equal(await again.report("b", { round: 0 }), 0, "a round that is answered stays so");
      assert.deepEqual((await again.deliver()).sent, [0], "what is queued was promised");
      await assert.rejects(again.agree(collector.url, { limit: 2 }), ParameterError);
      await again.agree(collector.url, { limit: 9 });
      assert.equal(await again.report("b", { round: 1 }), 1);
    }
  }
});

test("one-round rules under a shared limit", async () => {
  const protocol = { type: "grr", version: 1, k: 3, eps: 1 };
  const { sender, collector } = await made({ protocol });
  await sender.agree(collector.url, { limit: 2 });
  for (const round of [0, 1]) assert.equal(await sender.report("a", { round }), round);
  await assert.rejects(sender.report("a", { round: 2 }), BudgetError);
  // All is checked before the limit, whichever campaign leaves none.
  await assert.rejects(sender.reportAll({ hours: "a", unknown: "a" }, { round: 2 }), ParameterError);
  await assert.rejects(sender.report("d", { round: 2 }), DomainError);
  assert.deepEqual((await sender.deliver()).sent, [0, 1]);
  assert.equal(await sender.report("b", { round: 1 }), 1);
});
