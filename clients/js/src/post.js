/** Requests to a collector, repeated with patience; what an answer settles. */

import { JSON_MEDIA, LARGEST_ANSWER, answerOf, answersOf, detailOf, fateOf, retryAfter } from "./answer.js";
import { integer, isAble, real } from "./check.js";
import { Unreachable, must } from "./errors.js";

const LARGEST_DOCUMENT = 2 ** 26;
const BUSY = /^(429|50[0234])$/;

/** Whether a header carries it: ASCII characters that print, not spaces alone. */
export const isVisible = (text) => typeof text === "string" && /^ *[!-~][ -~]*$/.test(text);

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
  clock,
  sleep = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds)),
  fetch: asking = (...request) => fetch(...request),
}) {
  integer(1)("attempts", attempts);
  for (const [name, seconds] of Object.entries({ first, longest, timeout })) real(0, 1e6)(name, seconds);
  must(isAble({ clock, sleep, asking }, "clock", "sleep", "asking"), "clock, sleep and fetch must be functions");
  /** By origin, since when, how long and after how many failures in a row nothing is to be asked. */
  const rests = new Map();

  /** One answer, to so many reports; one that says so if there was none. */
  async function once(url, { token, body, keepalive = false, reports = 1 }) {
    must(token === null || isVisible(token), "token must be visible ASCII characters");
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
      const text = await bounded(response, isPost ? LARGEST_ANSWER * reports : LARGEST_DOCUMENT);
      return answerOf(response.status, response.headers, text, reports);
    } catch {
      return { status: 503, json: { status: 503, detail: "it cannot be reached" } };
    }
  }

  /** Note how long a collector is to be left alone: as it asks, or longer each time. */
  function rest(url, isBusy, { after, date }, least = 0) {
    const { origin } = new URL(url);
    const failures = (rests.get(origin)?.failures ?? 0) + 1;
    const asked = retryAfter(after, date, now()) ?? 0;
    // A random part, so that devices do not come back together.
    const drawn = Math.random() * Math.min(longest, first * 2 ** (failures - 1));
    if (isBusy) rests.set(origin, { since: now(), asked, seconds: Math.max(asked, drawn, least), failures });
    else rests.delete(origin);
  }

  const now = () => Number(clock());

  /** Seconds for which a collector has still to be left alone; `asked` for those that it asked for alone. */
  function restOf(url, name = "seconds") {
    const { since, [name]: seconds } = rests.get(new URL(url).origin) ?? {};
    const passed = now() - since;
    // A clock that went back, or shows nothing, says nothing.
    return passed >= 0 ? seconds - passed : 0;
  }

  /**
   * The answer to a request; with a body it is a POST.
   *
   * `begin(request)` begins each attempt; where it gives undefined, there is none, and no answer.
   */
  async function ask(url, asked, begin = (request) => request()) {
    for (let attempt = 1; ; attempt++) {
      const wait = restOf(url, attempt === 1 ? "asked" : "seconds");
      must(wait <= longest, `collector must be left alone for ${Math.ceil(wait)} s`, Unreachable);
      if (wait > 0) await sleep(wait);
      const answer = await begin(() => once(url, asked));
      if (!answer) return answer;
      const isBusy = BUSY.test(answer.status);
      rest(url, isBusy, answer);
      if (!isBusy) return answer;
      must(attempt < attempts, `collector must answer: ${detailOf(answer)}`, Unreachable);
    }
  }

  /** What became of a report: see `fateOf`; `stop` where nobody answered; undefined where it was not to be sent. */
  async function send({ url, token }, message, begin) {
    try {
      const answer = await ask(`${url}/reports`, { token, body: message }, begin);
      return answer && fateOf(answer, reporterOf(message));
    } catch ({ message: detail }) {
      return { detail, stop: true };
    }
  }

  /** What became of several reports, sent once, by a request that outlives the page. */
  async function leave(base, token, messages) {
    const reports = messages.length;
    // Pages come and go more often than collectors mend, or even answer.
    rest(base, true, {}, longest);
    const answer = await once(`${base}/v1/reports`, { token, body: `[${messages}]`, keepalive: true, reports });
    const fates = answersOf(answer, reports).map((part, i) => fateOf(part, reporterOf(messages[i])));
    rest(base, !fates.some(({ settled }) => settled), answer, longest);
    return fates;
  }

  /** Whether one request, which is never repeated, was answered as done. */
  const decline = async (url, token) => (await once(url, { token, body: "" })).status === 204;

  return { ask, send, leave, decline, restOf };
}

const reporterOf = (message) => JSON.parse(message).reporter;

/** The text of an answer, of so many bytes at most. */
async function bounded({ body }, largest) {
  if (!body) return "";
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const reader = body.getReader();
  let text = "";
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.length;
    if (size > largest) await reader.cancel();
    must(size <= largest);
    text += decoder.decode(value, { stream: true });
  }
}
