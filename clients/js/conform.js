#!/usr/bin/env node
/**
 * Answers the conformance kit: one JSON object a line, on standard input and output.
 *
 * Draws are asked for one by one, so that the kit can follow every outcome.
 */

import { readSync, writeSync } from "node:fs";
import { auditor } from "./audit.js";
import { Campaign, Client, LolohaError, encode } from "./src/index.js";
import { stateOf, textOf } from "./src/state.js";

let pending = "";

/** The next line, null at the end. Blocks: a draw is asked for in the middle of the client's code. */
function line() {
  const block = Buffer.alloc(65536);
  for (;;) {
    const end = pending.indexOf("\n");
    if (end >= 0) {
      const found = pending.slice(0, end);
      pending = pending.slice(end + 1);
      return found;
    }
    const size = readSync(0, block);
    if (size === 0) return null;
    pending += block.toString("utf8", 0, size);
  }
}

const write = (text) => writeSync(1, `${text}\n`);
const say = (plain) => write(JSON.stringify(plain));

function drawn(question) {
  say(question);
  return JSON.parse(line()).drawn;
}

const rng = {
  bernoulli: (threshold) => drawn({ draw: "bernoulli", threshold }),
  below: (n) => drawn({ draw: "below", n }),
};

let last = { document: null, campaign: null };

/** The campaign of a document; the same one is asked about many times in a row. */
async function read(document) {
  if (document !== last.document) last = { document, campaign: await Campaign.read(document) };
  return last.campaign;
}

const ANSWERS = {
  async document({ document, fingerprint }) {
    const { fingerprint: found, protocol, labels } = await Campaign.read(document, fingerprint);
    return {
      fingerprint: found,
      thresholds: [protocol.first, protocol.second],
      cap: Number.isFinite(protocol.cap) ? protocol.cap : null,
      labels: labels.length > 1000 ? null : labels,
    };
  },

  async index({ document, value }) {
    return { index: (await read(document)).index(value) };
  },

  async round({ document, moment }) {
    return { round: (await read(document)).roundAt(moment) };
  },

  /** One client, new or restored, reports indices of values, round by round. */
  async reports({ document, state, limit, ticket, reports }) {
    const campaign = await read(document);
    const { protocol } = campaign;
    const client = state !== null
      ? await Client.load(state, { protocol, rng })
      : new Client(protocol, { limit, rng, every: campaign.schedule.every });
    const messages = [];
    for (const [round, value] of reports) {
      try {
        const reporter = await client.reporter(round);
        messages.push(encode(campaign, client.report(value, round), { round, reporter, ticket }));
      } catch (error) {
        messages.push(nameOf(error));
      }
    }
    return { messages, loss: client.loss, state: await client.save() };
  },

  async reset({ state }) {
    const client = await Client.load(state, { rng });
    client.reset();
    return { loss: client.loss, state: await client.save() };
  },

  /** The lines of `loloha audit` until an empty one, drawn by the device's own source. */
  async audit({ document }) {
    const answer = auditor((await read(document)).protocol);
    say({});
    for (let asked = line(); asked; asked = line()) write(answer(asked));
    return {};
  },

  async sender({ state }) {
    return { state: await textOf(await stateOf(state)) };
  },
};

function nameOf(error) {
  if (error instanceof LolohaError) return error.name;
  throw error;
}

for (let asked = line(); asked !== null; asked = line()) {
  const question = JSON.parse(asked);
  try {
    say(await ANSWERS[question.ask](question));
  } catch (error) {
    say({ error: nameOf(error) });
  }
}
