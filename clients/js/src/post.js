/** Requests to a collector, repeated with patience; what an answer settles. */

import { isObject, tried } from "./check.js";
import { ParameterError, Unreachable, must } from "./errors.js";

const LARGEST_ANSWER = 2 ** 26;
const LARGEST_RECEIPT = 2 ** 16;
const BUSY = [429, 500, 502, 503, 504];
const PROBLEM = "urn:loloha:problem:";
/**
 * Why a report is never counted. Others settle nothing: what cannot be read may have been mangled on
 * the way, or be for a later release of the collector, and early reports only have to wait.
 */
const FINAL = /^(foreign_campaign|bad_(reporter|key|y|ticket)|late|conflict)$/;

export class Post {
  /**
   * @param {object} patience
   * @param {number} patience.attempts how often to try
   * @param {number} patience.first seconds before the second attempt; doubles from then on
   * @param {number} patience.longest seconds between two attempts at most
   * @param {number} patience.timeout seconds for one request
   */
  constructor(patience) {
    this.patience = {
      attempts: 5,
      first: 0.5,
      longest: 30,
      timeout: 10,
      sleep: (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds)),
      fetch: (...request) => globalThis.fetch(...request),
      ...patience,
    };
  }

  /** The answer to a request; with a body it is a POST. */
  async fetch(url, asked) {
    const { attempts, first, longest, sleep } = this.patience;
    const last = asked.keepalive ? 1 : attempts;
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#once(url, asked);
      if (answer !== null && !BUSY.includes(answer.status)) return answer;
      const after = answer?.after ?? 0;
      if (attempt >= last || after > longest) {
        throw new Unreachable(`collector must answer: ${answer?.detail ?? "it cannot be reached"}`);
      }
      // A random part, so that devices do not come back together.
      const wait = Math.random() * Math.min(longest, first * 2 ** (attempt - 1));
      await sleep(Math.max(wait, after));
    }
  }

  /**
   * What became of a report: {settled, refusal, reason}; `stop` where nobody answered. One that is
   * kept alive is a single request, which outlives the page.
   */
  async report({ url, token }, message, keepalive = false) {
    try {
      const asked = { token, body: message, largest: LARGEST_RECEIPT, keepalive };
      return verdict(await this.fetch(`${url}/reports`, asked), message);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      return { settled: false, reason: error.message, stop: true };
    }
  }

  /** One answer, null if there was none. */
  async #once(url, { token, body, largest = LARGEST_ANSWER, keepalive = false }) {
    must(token === null || /^[!-~]+$/.test(token), ParameterError, "token must be visible ASCII");
    const headers = { Accept: "application/json" };
    if (token !== null) headers.Authorization = `Bearer ${token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    try {
      const response = await this.patience.fetch(url, {
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
    must(size <= largest, Unreachable);
    text += decoder.decode(value, { stream: true });
  }
  return text + decoder.decode();
}

function answerOf(response, text) {
  // Undefined for the page of a gateway, for example.
  const json = tried(() => JSON.parse(text));
  const { status, headers } = response;
  const after = Number(headers.get("retry-after")) || 0;
  const media = (headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase();
  const isProblem = media === "application/problem+json" && isObject(json) && json.status === status;
  const detail = isProblem ? String(json.detail).slice(0, 500) : `it answered ${status}`;
  return { status, text, json, media, isProblem, detail, after };
}

/** A status code is no receipt: only what this service says of this report settles it. */
function verdict({ status, json, media, isProblem, detail }, message) {
  const { reporter } = JSON.parse(message);
  // A receipt that names another report is an old one, out of somebody's cache.
  const isOurs = isObject(json) && (json.reporter ?? reporter) === reporter;
  const isReceipt = status === 200 && media === "application/json" && isOurs && isCounted(json);
  if (isReceipt) return { settled: true };
  const reason = isProblem && isOurs && json.type === PROBLEM + json.reason ? json.reason : null;
  if (typeof reason === "string" && FINAL.test(reason) && status < 500) return { settled: true, refusal: detail };
  return { settled: false, reason: detail };
}

/** Whether all of it is there, of the types that a receipt has. */
const isCounted = ({ accepted, duplicates, refused }) =>
  ["[1,0,[]]", "[0,1,[]]"].includes(JSON.stringify([accepted, duplicates, refused]));
