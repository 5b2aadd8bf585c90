/** What tests of the sender share: a campaign, a collector that says what it is told to, a clock. */

import { Campaign } from "../src/index.js";
import { canonical } from "../src/json.js";
import { sha256 } from "../src/number.js";

// Whoever runs the tests may want none of this themselves.
delete process.env.DO_NOT_TRACK;

export const START = 1_767_225_600;
export const HOUR = 3600;

export const DOCUMENT = {
  type: "loloha-campaign",
  version: 1,
  name: "hours",
  protocol: {
    type: "biloloha",
    version: 1,
    k: 3,
    eps_inf: 2,
    eps_1: 1,
    calibration: "tight",
    hash: "linear",
  },
  labels: ["a", "b", "c"],
  round: { start: "2026-01-01T00:00:00Z", seconds: HOUR },
  keys: "drawn",
};

/** A state with the checksum that belongs to it, as text. */
export async function sealed({ checksum, ...plain }) {
  return canonical({ ...plain, checksum: await sha256(canonical(plain)) });
}

/** A document as a collector sends it, and its address. */
export async function published(changes = {}) {
  const campaign = await Campaign.restore({ ...DOCUMENT, ...changes });
  const url = `https://reports.example/v1/campaigns/${campaign.fingerprint}`;
  return { text: canonical(campaign.plain), url };
}

const reporterOf = (message) => (message === undefined ? undefined : JSON.parse(message).reporter);

/** Answers to a message. */
export const receipt = (message, accepted = 1) =>
  Response.json({ accepted, duplicates: 1 - accepted, refused: [], reporter: reporterOf(message) });

export function problem(status, kind, headers = {}, message, more = {}) {
  const body = { type: `urn:loloha:problem:${kind}`, title: "", status, detail: `it is ${kind}`, reason: kind, ...more };
  return new Response(JSON.stringify({ ...body, reporter: reporterOf(message) }), {
    status,
    headers: { "content-type": "application/problem+json", ...headers },
  });
}

/** A fetch that serves one document and answers reports from a list, the last one for ever. */
export class Collector {
  messages = [];
  requests = [];
  answers = [receipt];
  /** What its campaign is: its address says so, or what this gives. */
  state = () => Response.json({ state: "open", eps_inf: 0.5 });

  constructor({ text, url }) {
    this.text = text;
    this.url = url;
  }

  fetch = async (url, init = {}) => {
    this.requests.push({ url, ...init });
    if (url === `${this.url}/document`) return new Response(this.text);
    if (url === this.url) return this.state();
    if (url === `${this.url}/keys`) return this.keys();
    const { pathname } = new URL(url);
    if (pathname !== "/v1/reports") return this.#answer(init.body);
    const messages = JSON.parse(init.body).map((one) => JSON.stringify(one));
    const answers = await Promise.all(messages.map((one) => this.#answer(one)));
    const away = answers.find(({ status }) => status >= 429);
    if (away) return away;
    const parts = answers.map(async (one) => ({ status: one.status, body: await one.json() }));
    return Response.json({ answers: await Promise.all(parts) });
  };

  #answer(message) {
    this.messages.push(message);
    const answer = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
    return answer(message);
  }

  keys = () => Response.json({ key: "03", ticket: "7".repeat(32) });
}
