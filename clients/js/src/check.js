/** Checks of what comes in; each error says what to do, and none shows a user's value. */

import { CampaignError, ParameterError, must } from "./errors.js";

export const isObject = (plain) =>
  plain !== null && typeof plain === "object" && !Array.isArray(plain);

/** Whether it is an integer in low..high. */
export const isInteger = (value, low, high) =>
  Number.isSafeInteger(value) && low <= value && value <= high;

/** An integer in low..high. */
export function integer(name, value, low, high) {
  // Texts are made where they are needed: this runs in every report.
  if (!isInteger(value, low, high)) {
    throw new ParameterError(`${name} must be an integer in ${low}..${high}`);
  }
  return value;
}

/** A number in [low, high]. */
export function real(name, value, low, high) {
  const holds = typeof value === "number" && low <= value && value <= high;
  must(holds, ParameterError, `${name} must be a number in [${low}, ${high}]`);
  return value;
}

/** Whether it is an amount that can have been spent. */
export const isAmount = (x) => typeof x === "number" && x >= 0 && x < Infinity;

/** What `act` gives, undefined where it fails. */
export function tried(act) {
  try {
    return act();
  } catch {
    return undefined;
  }
}

/** A document of one type and version. */
export function release(name, plain, type, version, Kind) {
  const known = plain?.type === type && plain.version === version;
  must(known, Kind, `${name} must be a ${type} of version ${version}`);
}

export function choice(name, value, options) {
  must(options.includes(value), ParameterError, `${name} must be one of ${options}`);
  return value;
}

/** An object with exactly the members `required`, and perhaps some of `optional`. */
export function members(name, plain, required, optional = []) {
  const found = isObject(plain) ? Object.keys(plain) : [];
  const known = [...required, ...optional];
  const holds = required.every((one) => found.includes(one)) && found.every((one) => known.includes(one));
  must(holds, CampaignError, `${name} must have ${required}`);
  return plain;
}

/** 1..200 printable characters without spaces at the ends. */
export function text(name, value) {
  const holds = typeof value === "string" && /^(?! )(?: |[^\p{C}\p{Z}]){1,200}(?<! )$/u.test(value);
  must(holds, CampaignError, `${name} must be 1..200 printable characters, trimmed`);
  return value;
}

/** Whether it can be a round's number, or how many there are of something. */
export const isCount = (value) => isInteger(value, 0, Number.MAX_SAFE_INTEGER);

/** A round's number. */
export const round = (value) => integer("round", value, 0, Number.MAX_SAFE_INTEGER);
