/** Checks of what comes in; each error says what to do, and none shows a user's value. */

import { CampaignError, ParameterError } from "./errors.js";

export const isObject = (plain) =>
  plain !== null && typeof plain === "object" && !Array.isArray(plain);

/** An integer in low..high. */
export function integer(name, value, low, high) {
  if (!Number.isSafeInteger(value) || value < low || value > high) {
    throw new ParameterError(`${name} must be an integer in ${low}..${high}; correct it`);
  }
  return value;
}

/** A number in [low, high]. */
export function real(name, value, low, high) {
  if (typeof value !== "number" || !(low <= value && value <= high)) {
    throw new ParameterError(`${name} must be a number in [${low}, ${high}]; correct it`);
  }
  return value;
}

export const eps = (name, value) => real(name, value, 1e-6, 700);

export function choice(name, value, options) {
  if (!options.includes(value)) {
    throw new ParameterError(`${name} must be one of ${options}; choose one`);
  }
  return value;
}

/** An object with exactly the members `required`, and perhaps some of `optional`. */
export function members(name, plain, required, optional = []) {
  const found = isObject(plain) ? Object.keys(plain) : [];
  const known = [...required, ...optional];
  if (!required.every((one) => found.includes(one)) || !found.every((one) => known.includes(one))) {
    throw new CampaignError(`${name} must be an object with ${required}; export it again`);
  }
  return plain;
}

/** 1..longest printable characters without spaces at the ends. */
export function text(name, value, longest = 200) {
  const printable = typeof value === "string" && /^(?: |[^\p{C}\p{Z}])+$/u.test(value);
  if (!printable || [...value].length > longest || value !== value.trim()) {
    throw new CampaignError(
      `${name} must be 1..${longest} printable characters without spaces at the ends; clean it`,
    );
  }
  return value;
}

export const ROUND = [0, Number.MAX_SAFE_INTEGER];
