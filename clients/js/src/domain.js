/** The values that a campaign asks for: which one a user's is, and the text by which people know it. */

import * as check from "./check.js";
import { DomainError, must } from "./errors.js";
import { SCALE } from "./exact.js";
import { floatText } from "./json.js";

const LONGEST_NUMBER = 400;
const MORE_DIGITS = 6;
const SMALLEST_PLAIN = -6;
const DECIMAL = /^([+-]?(?=\.?\d)\d*)\.?(\d*)(?:e([+-]?\d{1,9}))?$/i;
// What Python's str.strip takes away.
const BLANKS = "[\\t-\\r\\x1c-\\x1f\\x85\\p{Z}]+";
const AROUND = RegExp(`^${BLANKS}|${BLANKS}$`, "gu");

/**
 * The domain that a document describes by `labels` and, perhaps, `other`, which is the last value:
 * `indexOfValue` gives undefined for what is not among the others.
 */
export const domain = (name, labels, { other }) =>
  (Array.isArray(labels) ? list : range)(labels, other === undefined ? [] : [other]);

/** A domain given by its labels. */
function list(labels, other) {
  const all = [...labels, ...other];
  const texts = all.map((label) => {
    if (!Number.isInteger(label) || Math.abs(label) > SCALE) check.text("label", label);
    return clean(String(label));
  });
  const index = new Map(texts.map((text, v) => [text, v]));
  must(index.size === all.length, "labels must differ, two are equal");
  const isNumeric = labels.every((_, v) => whole(texts[v]) === texts[v]);
  return {
    k: all.length,
    wanted: "a label",
    labelOf: (v) => String(all[v]),
    indexOfValue(value) {
      const text = textOf(value);
      const otherwise = isNumeric ? whole(text) : typeof value === "boolean" && String(value);
      return index.get(text) ?? index.get(otherwise);
    },
  };
}

/** A domain of equal parts of the numbers from low to high, both included, in exact decimals. */
function range(labels, other) {
  const { range, bins } = check.members(labels, { range: ends, bins: check.integer(1, 2 ** 24) });
  const decimals = range.map((end) => decimal(String(end)));
  const edge = edges(decimals, BigInt(bins));
  return {
    k: bins + other.length,
    wanted: `a number from ${range[0]} to ${range[1]}`,
    labelOf(v) {
      if (v === bins) return other[0];
      return `[${edge(v)}, ${edge(v + 1)}${v === bins - 1 ? "]" : ")"}`;
    },
    indexOfValue(value) {
      const number = decimal(textOf(value));
      if (number === null) return undefined;
      const [x, low, high] = aligned([number, ...decimals]);
      if (x < low || x > high) return undefined;
      return Math.min(bins - 1, Number(((x - low) * BigInt(bins)) / (high - low)));
    },
  };
}

/** Of low and high. */
function ends(name, value) {
  const isEnd = (end) => Number.isFinite(end) && Math.abs(end) <= SCALE;
  const holds = Array.isArray(value) && value.length === 2 && value.every(isEnd) && value[0] < value[1];
  must(holds, "range must be two numbers [low, high], low below high");
  return value;
}

// -- what a value says

const clean = (text) => text.normalize("NFC").replace(AROUND, "");

const TEXTS = {
  string: clean,
  number: (x) => (Number.isInteger(x) ? String(BigInt(x)) : floatText(x)),
  bigint: String,
  boolean: (is) => (is ? "True" : "False"),
};

/** The text that a value is known by. */
function textOf(value) {
  const text = TEXTS[typeof value]?.(value);
  must(text && !Number.isNaN(value), "value must be text, a number or a boolean; where it is missing, report nothing", DomainError);
  return text;
}

/** The integer, as text, that a text is written for: 7 or, as a float, 7.0. */
const whole = (text) => /^(0|-?[1-9]\d{0,16})(\.0)?$/.exec(text)?.[1];

// -- exact decimals: pairs [integer, power of ten]

/** The decimal that a text stands for, null if it stands for none. */
function decimal(text) {
  const [, whole, part, power = 0] = (text.length <= LONGEST_NUMBER && DECIMAL.exec(text)) || [];
  if (whole === undefined || Math.abs(power) > LONGEST_NUMBER) return null;
  return [BigInt(whole + part), power - part.length];
}

/** Integers that are to each other as the decimals are. */
function aligned(decimals) {
  const least = Math.min(...decimals.map(([, power]) => power));
  return decimals.map(([integer, power]) => integer * ten(power - least));
}

const ten = (power) => 10n ** BigInt(power);

/**
 * The texts of the edges low + i (high - low) / bins: each true, and no two alike. All are written in
 * full where that takes few decimals beyond those that tell them apart; else one that is longer is
 * cut off there, which "…" says.
 */
function edges(ends, bins) {
  const [low, high, one] = aligned([...ends, [1n, 0]]);
  // An edge is (first + i step) / unit.
  const [first, step, unit] = [low * bins, high - low, one * bins];
  let apart = 0;
  while (step * ten(apart) < unit) apart += 1;
  const isFull = (decimals) => [first, step].every((part) => !((part * ten(decimals)) % unit));
  const decimals = [...Array(apart + MORE_DIGITS + 1).keys()].find(isFull) ?? apart + MORE_DIGITS - 1;
  return (i) => {
    const number = (first + BigInt(i) * step) * ten(decimals);
    const size = number < 0n ? -number : number;
    const more = size % unit ? "…" : "";
    const bare = (text) => (number < 0n ? "-" : "") + (more ? text : text.replace(/\.?0*$/, "")) + more;
    const digits = String(size / unit);
    const power = digits.length - 1 - decimals;
    if (power < SMALLEST_PLAIN && size >= unit) return `${bare(digits.replace(/^.(?=.)/, "$&."))}e${power}`;
    return bare(digits.padStart(decimals + 1, "0").replace(RegExp(`.{${decimals}}$`), ".$&"));
  };
}
