/** What a collector's answer says of a report, and how long it asks to wait. */

import { isInteger, tried } from "./check.js";
import { parseIntegers } from "./json.js";

export const JSON_MEDIA = "application/json";
const PROBLEM_MEDIA = "application/problem+json";
/** Bytes of an answer to one report. */
export const LARGEST_ANSWER = 65536;
const MOST_BRACKETS = 100;
const COUNTED = ["[1,0,[]]", "[0,1,[]]"];
/**
 * Why a report is never counted. Others settle nothing: what cannot be read may have been mangled on
 * the way, or be for a later release of the collector, and early reports only have to wait.
 */
const FINAL = ["foreign_campaign", "bad_reporter", "bad_key", "bad_y", "bad_ticket", "late", "conflict"];

/** What a collector says of a campaign that takes no reports, for now or for ever. */
export const HALTED = ["paused", "ended"];

/**
 * An answer as it came in.
 *
 * @param {number} status
 * @param {{get(name: string): string | null}} headers
 * @param {string} text
 * @param {number} [reports] how many it answers
 */
export function answerOf(status, headers, text, reports = 1) {
  const media = (headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase();
  const isSmall = text.length <= LARGEST_ANSWER * reports && !(text.match(/[[{]/g)?.length > MOST_BRACKETS * reports);
  // Undefined for the page of a gateway, for example.
  const json = isSmall ? tried(parseIntegers, text) : undefined;
  return { status, media, text, json, after: headers.get("retry-after"), date: headers.get("date") };
}

/** What an answer says, for people. */
export const detailOf = ({ status, json }) =>
  json?.status === status ? String(json.detail).slice(0, 500) : `it answered ${status}`;

/** Of an answer to several reports those to each, as if it had been sent alone; none if it is no such answer. */
export function answersOf({ status, media, json }, reports) {
  const parts = status === 200 && media === JSON_MEDIA && json?.answers;
  if (!Array.isArray(parts) || parts.length !== reports) return [];
  return parts.map((part) => {
    const { status, body } = part ?? {};
    return { status, media: status === 200 ? JSON_MEDIA : PROBLEM_MEDIA, json: body };
  });
}

/**
 * What an answer says of a report: whether it is settled, by its count or its refusal for good.
 *
 * A status code is no receipt: only the collector's own word about this report settles it. `halted` is
 * "paused" or "ended" where the refusal is for the whole campaign.
 */
export function fateOf(answer, reporter) {
  const { status, media, json } = answer;
  const { accepted, duplicates, refused, type, reason, campaign } = json ?? {};
  // What names another report, or none, is an old answer out of somebody's cache.
  const isOurs = json?.reporter === reporter;
  // All of it must be there, of the types that a receipt has.
  const isCounted =
    isOurs &&
    status === 200 &&
    media === JSON_MEDIA &&
    COUNTED.includes(JSON.stringify([accepted, duplicates, refused]));
  const isRefused =
    isOurs &&
    isInteger(status, 499, 400) &&
    media === PROBLEM_MEDIA &&
    json.status === status &&
    FINAL.includes(reason) &&
    type === `urn:loloha:problem:${reason}`;
  const halted = isRefused && HALTED.includes(campaign) ? campaign : undefined;
  return { settled: isCounted || isRefused, isCounted, halted, detail: detailOf(answer) };
}

/** Seconds: more than this is this. */
const LONGEST_WAIT = 1e9;
/** The day of a date whose year has four digits, the first not 0: others are read as years of another century. */
const WEEKDAY = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?=.{7}[1-9].{16}$)/;

/** Unix seconds of a date as HTTP writes it, undefined for anything else. */
function secondsOf(text) {
  const [day] = WEEKDAY.exec(text) ?? [];
  const rest = text?.slice(day?.length);
  const date = new Date(rest);
  // It is read if it is written so; the name of the day is not compared.
  return day && date.toUTCString().endsWith(`, ${rest}`) ? date / 1000 : undefined;
}

/** Seconds that a `Retry-After` asks to wait, null if it asks for nothing. */
export function retryAfter(value, date, now) {
  const text = (value ?? "").replace(/^[ \t]+|[ \t]+$/g, "");
  const seconds = /^[0-9]+$/.test(text) ? Number(text) : secondsOf(text) - (secondsOf(date) ?? now);
  return Number.isNaN(seconds) ? null : Math.max(0, Math.min(seconds, LONGEST_WAIT));
}
