/** Requests to a collector, repeated with patience; what an answer settles. */

import { isObject } from "./check.js";
import { ParameterError, Unreachable } from "./errors.js";

const LARGEST_ANSWER = 2 ** 26;
const LARGEST_RECEIPT = 2 ** 16;
const BUSY = [429, 500, 502, 503, 504];
const PROBLEM = "urn:loloha:problem:";
/** Why a report is never counted: it need not be sent again. Others than these settle nothing. */
const REFUSALS = [
  "malformed",
  "unknown_version",
  "foreign_campaign",
  "bad_reporter",
  "bad_key",
  "bad_y",
  "bad_ticket",
  "late",
  "conflict",
];

export class Post {
  /**
   * @param {object} patience
   * @param {number} patience.attempts how often to try
   * @param {number} patience.first seconds before the second attempt; doubles from then on
   * @param {number} patience.longest seconds between two attempts at most
   * @param {number} patience.timeout seconds for one request
   */
  constructor({
    attempts = 5,
    first = 0.5,
    longest = 30,
    timeout = 10,
    sleep = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds)),
    fetch = (...request) => globalThis.fetch(...request),
  }) {
    this.patience = { attempts, first, longest, timeout, sleep };
    this.send = fetch;
  }

  /** The answer to a request; with a body it is a POST. */
  async fetch(url, { token, body, largest = LARGEST_ANSWER }) {
    const { attempts, first, longest, sleep } = this.patience;
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#once(url, { token, body, largest });
      if (answer !== null && !BUSY.includes(answer.status)) return answer;
      const asked = answer?.after ?? 0;
      if (attempt >= attempts || asked > longest) {
        throw new Unreachable(`collector must answer: ${answer?.detail ?? "it cannot be reached"}`);
      }
      // A random part, so that devices do not come back together.
      const wait = Math.random() * Math.min(longest, first * 2 ** (attempt - 1));
      await sleep(Math.max(wait, asked));
    }
  }

  /** What became of a report: {settled, refusal, reason, stop}. */
  async report({ url, token }, message) {
    try {
      return verdict(await this.fetch(`${url}/reports`, { token, body: message, largest: LARGEST_RECEIPT }));
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      return { settled: false, reason: error.message, stop: true };
    }
  }

  /** The same by one request that outlives the page. */
  async once({ url, token }, message) {
    const answer = await this.#once(`${url}/reports`, {
      token,
      body: message,
      largest: LARGEST_RECEIPT,
      keepalive: true,
    });
    return answer === null ? { settled: false } : verdict(answer);
  }

  /** One answer, null if there was none. */
  async #once(url, { token, body, largest, keepalive = false }) {
    if (token !== null && !/^[!-~]+$/.test(token)) {
      throw new ParameterError("token must be visible ASCII characters, got others; set it again");
    }
    const headers = { Accept: "application/json" };
    if (token !== null) headers.Authorization = `Bearer ${token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    try {
      const response = await this.send(url, {
        method: body === undefined ? "GET" : "POST",
        body,
        headers,
        keepalive,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        referrerPolicy: "no-referrer",
        signal: AbortSignal.timeout(1000 * this.patience.timeout),
      });
      return answerOf(response, await bounded(response, largest));
    } catch {
      return null;
    }
  }
}

async function bounded(response, largest) {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text = "";
  let size = 0;
  for (const reader = response.body?.getReader(); reader; ) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > largest) throw new Unreachable("answer too large");
    text += decoder.decode(value, { stream: true });
  }
  return text + decoder.decode();
}

function answerOf(response, text) {
  let json = null;
  try {
    json = JSON.parse(text);
  } catch {
    // A page of a gateway, for example.
  }
  const { status, headers } = response;
  const after = Number(headers.get("retry-after") ?? 0);
  const isProblem =
    /^application\/problem\+json\b/.test(headers.get("content-type") ?? "") &&
    isObject(json) &&
    json.status === status &&
    String(json.type).startsWith(PROBLEM);
  return {
    status,
    text,
    json,
    after: after >= 0 ? after : 0,
    problem: isProblem ? json.type.slice(PROBLEM.length) : null,
    detail: isProblem ? String(json.detail).slice(0, 500) : `it answered ${status}`,
  };
}

/** A status code is no receipt: only what this service alone says settles a report. */
function verdict({ status, json, problem, detail }) {
  const isReceipt =
    status === 200 && isObject(json) && json.accepted + json.duplicates === 1 && Array.isArray(json.refused);
  if (isReceipt) return { settled: true };
  if (REFUSALS.includes(problem)) return { settled: true, refusal: detail };
  // A report that is too early must not hold up the others.
  return { settled: false, reason: detail, stop: problem !== "early" };
}
