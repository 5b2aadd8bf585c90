/** What tests of the sender share: a campaign, a collector that says what it is told to, a clock. */

import { Campaign } from "../src/index.js";

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

/** A document as a collector sends it, and its address. */
export async function published(changes = {}) {
  const { canonical } = await import("../src/json.js");
  const campaign = await Campaign.restore({ ...DOCUMENT, ...changes });
  const url = `https://reports.example/v1/campaigns/${campaign.fingerprint}`;
  return { text: canonical(campaign.plain), url };
}

export const receipt = (accepted = 1) =>
  Response.json({ accepted, duplicates: 1 - accepted, refused: [] });

export function problem(status, kind, headers = {}) {
  const body = { type: `urn:loloha:problem:${kind}`, title: "", status, detail: `it is ${kind}`, reason: kind };
  return new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/problem+json", ...headers },
  });
}

/** A fetch that serves one document and answers reports from a list, the last one for ever. */
export class Collector {
  messages = [];
  requests = [];
  answers = [receipt];

  constructor({ text, url }) {
    this.text = text;
    this.url = url;
  }

  fetch = async (url, init = {}) => {
    this.requests.push({ url, ...init });
    if (url === `${this.url}/document`) return new Response(this.text);
    if (url === `${this.url}/keys`) return this.keys();
    this.messages.push(init.body);
    const answer = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
    return answer();
  };

  keys = () => Response.json({ key: "03", ticket: "7".repeat(32) });
}
