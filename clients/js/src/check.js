/**
 * Checks of what comes in; each error says what must be, and none shows a user's value.
 *
 * A check gets a member's name, its value and all members, and gives what the member stands for.
 */

import { must } from "./errors.js";

/** Whether it is an integer in low..high. */
export const isInteger = (value, high = Infinity, low = 0) =>
  Number.isSafeInteger(value) && low <= value && value <= high;

/** Whether it is an amount that can have been spent. */
export const isAmount = (value) => Number.isFinite(value) && value >= 0;

/** Of numbers of a kind from `low` to `high`, which may be the name of another member. */
const numbers = (kind, isOfKind) => (low, high = Infinity) => (name, value, all) => {
  const most = all?.[high] ?? high;
  // The text is made where it is needed: this runs in every report.
  if (!isOfKind(value) || value < low || value > most) {
    must(false, `${name} must be ${kind} ${most === Infinity ? ">= " + low : `from ${low} to ${most}`}; correct it`);
  }
  return value;
};

export const integer = numbers("an integer", Number.isSafeInteger);
export const real = numbers("a number", Number.isFinite);

/** The number of a round. */
export const round = integer(0);

export const choice = (...options) => (name, value) => {
  must(options.includes(value), `${name} must be one of ${options.join(", ")}; correct it`);
  return value;
};

/** 1..200 printable characters without spaces at the ends. */
export function text(name, value) {
  const holds = typeof value === "string" && /^(?! )(?: |[^\p{C}\p{Z}]){1,200}(?<! )$/u.test(value);
  must(holds, `${name} must be 1..200 printable characters without spaces at the ends`);
  return value;
}

/** A member that may be left out. */
export const optional = (check) => (name, value, all) => name in all && check(name, value, all);

/** What the members of an object stand for, each by its check; there must be no others. */
export function members(plain, checks, names = Object.keys(checks)) {
  const checked = {};
  for (const name of names) checked[name] = checks[name](name, plain?.[name], plain);
  for (const name of Object.keys(plain)) choice(...names)("member", name);
  return checked;
}

/** The members of an object that a call is given, each read once; none for nothing. */
export function given(name, plain) {
  const read = typeof (plain ?? {}) === "object" && tried((one) => ({ ...one }), plain);
  must(read, `${name} must be an object, {name: value, ...}; correct it`);
  return read;
}

/** Whether something has these methods. */
export const isAble = (one, ...methods) => tried(() => methods.every((method) => typeof one[method] === "function"));

export const isProtocol = (one) => tried(() => one.encoding.memoSymbols > 0);

export const isCampaign = (one) => tried(() => one.schedule.seconds > 0 && isProtocol(one.protocol));

/** What `act` gives, undefined where it fails. */
export function tried(act, given) {
  try {
    return act(given);
  } catch {
    return undefined;
  }
}
