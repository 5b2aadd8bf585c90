/** Requests to a collector, repeated with patience; what an answer settles. */

import { tried } from "./check.js";
import { ANOTHER, Unreachable, must } from "./errors.js";

const LARGEST_DOCUMENT = 2 ** 26;
const LARGEST_RECEIPT = 2 ** 16;
const BUSY = /^(429|50[0234])$/;
const JSON_MEDIA = "application/json";
const MEDIA = /^application\/(problem\+)?json *(;|$)/i;
const COUNTED = ["[1,0,[]]", "[0,1,[]]"];
/**
 * Why a report is never counted. Others settle nothing: what cannot be read may have been mangled on
 * the way, or be for a later release of the collector, and early reports only have to wait.
 */
const FINAL = ["foreign_campaign", "bad_reporter", "bad_key", "bad_y", "bad_ticket", "late", "conflict"];

/** Whether it is a text of visible ASCII characters, which headers can carry. */
export const isVisible = (text, longest = Infinity) =>
  typeof text === "string" && text.length <= longest && /^[!-~]*$/.test(text);

/**
 * What asks a collector.
 *
 * @param {object} patience
 * @param {number} [patience.attempts] how often to try
 * @param {number} [patience.first] seconds before the second attempt; doubles from then on
 * @param {number} [patience.longest] seconds between two attempts at most
 * @param {number} [patience.timeout] seconds for one request
 */
export function post({
  attempts = 5,
  first = 0.5,
  longest = 30,
  timeout = 10,
  sleep = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds)),
  fetch: asking = (...request) => fetch(...request),
}) {
  /** One answer; one that says so if there was none. */
  async function once(url, { token, body, keepalive = false }) {
    must(token === null || (token && isVisible(token)), "token must be visible ASCII");
    const isPost = body !== undefined;
    try {
      const response = await asking(url, {
        method: isPost ? "POST" : "GET",
        body,
        headers: {
          Accept: JSON_MEDIA,
          ...(token && { Authorization: `Bearer ${token}` }),
          ...(isPost && { "Content-Type": JSON_MEDIA }),
        },
        keepalive,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        referrerPolicy: "no-referrer",
        signal: AbortSignal.timeout(1000 * timeout),
      });
      return answerOf(response, await bounded(response, isPost ? LARGEST_RECEIPT : LARGEST_DOCUMENT));
    } catch {
      return { status: 503, detail: "it cannot be reached", after: 0 };
    }
  }

  /** The answer to a request; with a body it is a POST. Asked only while `waits()` holds, if it is given. */
  async function ask(url, asked, waits) {
    for (let attempt = 1; ; attempt++) {
      // No waiting where there is none to wait for: a page that goes away sends at once.
      must(!waits || (await waits()), ANOTHER, Unreachable);
      const answer = await once(url, asked);
      const { status, detail, after } = answer;
      if (!BUSY.test(status)) return answer;
      const isLast = attempt >= attempts || after > longest || asked.keepalive;
      must(!isLast, `collector must answer: ${detail}`, Unreachable);
      // A random part, so that devices do not come back together.
      const wait = Math.random() * Math.min(longest, first * 2 ** (attempt - 1));
      await sleep(Math.max(wait, after));
    }
  }

  /**
   * What became of a report: whether it is settled, by its count or a refusal; `stop` where nobody
   * answered. One that is kept alive is a single request, which outlives the page.
   */
  async function send({ url, token }, message, waits, keepalive) {
    try {
      const asked = { token, body: message, keepalive };
      const { json, detail, isCounted, isRefused } = await ask(`${url}/reports`, asked, waits);
      const { reporter } = JSON.parse(message);
      // What names another report is an old answer, out of somebody's cache.
      const isOurs = (json?.reporter ?? reporter) === reporter;
      return { settled: isOurs && (isCounted || isRefused), isCounted, detail };
    } catch ({ message: detail }) {
      return { detail, stop: true };
    }
  }

  return { ask, send };
}

async function bounded({ body }, largest) {
  if (!body) return "";
  const decoder = new TextDecoderStream("utf-8", { fatal: true, ignoreBOM: true });
  const reader = body.pipeThrough(decoder).getReader();
  for (let text = ""; ; ) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += value;
    must(text.length <= largest);
  }
}

/** A status code is no receipt: only what this service says of a report settles it. */
function answerOf({ status, headers }, text) {
  // Undefined for the page of a gateway, for example.
  const json = tried(JSON.parse, text);
  const { accepted, duplicates, refused, type, reason } = json ?? {};
  const [media, problem] = MEDIA.exec(headers.get("content-type")) ?? [];
  const isProblem = problem && json?.status === status;
  return {
    status,
    text,
    json,
    detail: isProblem ? String(json.detail).slice(0, 500) : `it answered ${status}`,
    after: Number(headers.get("retry-after")) || 0,
    // All of it must be there, of the types that a receipt has.
    isCounted:
      status === 200 && media && !problem && COUNTED.includes(JSON.stringify([accepted, duplicates, refused])),
    isRefused: isProblem && status < 500 && FINAL.includes(reason) && type === `urn:loloha:problem:${reason}`,
  };
}
