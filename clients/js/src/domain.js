/** The values that a campaign asks for: which one a user's is, and the text by which people know it. */

import * as check from "./check.js";
import { CampaignError, DomainError, must } from "./errors.js";
import { floatText } from "./json.js";

const LARGEST = 2 ** 53;
const LARGEST_BINS = 2 ** 24;
const LONGEST_NUMBER = 400;
const MORE_DIGITS = 6;
const SMALLEST_PLAIN = -6;
const RANGE = "range must be [low, high]";
const DECIMAL = /^([+-]?)(\d+\.?\d*|\.\d+)(?:e([+-]?\d{1,9}))?$/i;
// What Python's str.strip takes away: to JavaScript some of these are no blanks, and one more is.
const BLANKS = "(?:(?!\\ufeff)[\\s\\x1c-\\x1f\\x85])+";
const AROUND = RegExp(`^${BLANKS}|${BLANKS}$`, "g");

/** The domain that a document describes by `labels` and, or undefined, `other`. */
export function domain(labels, other) {
  const found = Array.isArray(labels) ? list(labels) : range(labels);
  if (other === undefined) return found;
  check.text("other", other);
  must(!found.has(other), CampaignError, "labels must differ");
  return { ...found, k: found.k + 1, other, text: (v) => (v === found.k ? other : found.text(v)) };
}

/** A domain given by its labels. */
function list(labels) {
  const index = new Map();
  for (const [i, label] of labels.entries()) {
    if (!Number.isInteger(label) || Math.abs(label) > LARGEST) check.text("labels", label);
    index.set(clean(String(label)), i);
  }
  must(index.size === labels.length, CampaignError, "labels must differ");
  const isNumeric = [...index.keys()].every((label) => whole(label) === label);
  return {
    k: labels.length,
    wanted: "a label",
    has: (label) => index.has(clean(label)),
    text: (v) => String(labels[v]),
    index(value) {
      for (const text of spellings(value)) {
        const found = index.get(text) ?? (isNumeric ? index.get(whole(text)) : undefined);
        if (found !== undefined) return found;
      }
      return undefined;
    },
  };
}

/** A domain of equal parts of the numbers from low to high, both included, in exact decimals. */
function range(labels) {
  check.members("labels", labels, ["range", "bins"]);
  const ends = labels.range;
  const bins = check.integer("bins", labels.bins, 1, LARGEST_BINS);
  must(Array.isArray(ends) && ends.length === 2, CampaignError, RANGE);
  for (const end of ends) check.real("range", end, -LARGEST, LARGEST);
  must(ends[0] < ends[1], CampaignError, RANGE);
  const [low, high] = ends.map((end) => decimal(String(end)));
  return {
    k: bins,
    wanted: `a number from ${ends[0]} to ${ends[1]}`,
    has: () => false,
    text(v) {
      const edge = edgesOf(low, high, BigInt(bins));
      return `[${edge(v)}, ${edge(v + 1)}${v === bins - 1 ? "]" : ")"}`;
    },
    index(value) {
      refuseMissing(value);
      const isNumber = typeof value === "number" || typeof value === "bigint";
      const number = decimal(isNumber ? String(value) : value);
      if (number === null) return undefined;
      const [x, a, b] = aligned([number, low, high]);
      if (x < a || x > b) return undefined;
      return Math.min(bins - 1, Number(((x - a) * BigInt(bins)) / (b - a)));
    },
  };
}

// -- what a value says

const clean = (text) => text.normalize("NFC").replace(AROUND, "");

function refuseMissing(value) {
  const isBlank = typeof value === "string" && clean(value) === "";
  const isThere = value !== undefined && value !== null && !Number.isNaN(value) && !isBlank;
  must(isThere, DomainError, "value must be there; report nothing");
}

/** The texts by which a label may be known that `value` is, the most literal first. */
function spellings(value) {
  refuseMissing(value);
  switch (typeof value) {
    case "string":
      return [clean(value)];
    case "bigint":
      return [String(value)];
    case "boolean":
      return value ? ["True", "true"] : ["False", "false"];
    case "number":
      if (!Number.isFinite(value)) return [];
      return [Number.isInteger(value) ? String(BigInt(value)) : floatText(value)];
    default:
      throw new DomainError("value must be text, a number or a boolean");
  }
}

/** The integer, as text, that a text is written for: 7 or, as a float, 7.0. */
function whole(text) {
  const digits = text.replace(/\.0$/, "");
  return /^-?\d{1,17}$/.test(digits) && String(BigInt(digits)) === digits ? digits : undefined;
}

// -- exact decimals: pairs [integer, power of ten]

/** The decimal that a text stands for, null if it stands for none. */
function decimal(value) {
  const text = typeof value === "string" ? value.replace(AROUND, "") : "";
  const found = text.length <= LONGEST_NUMBER ? DECIMAL.exec(text) : null;
  const power = Number(found?.[3] ?? 0);
  if (!found || Math.abs(power) > LONGEST_NUMBER) return null;
  const [digits, part = ""] = found[2].split(".");
  return [BigInt(`${digits}${part}`) * (found[1] === "-" ? -1n : 1n), power - part.length];
}

/** Integers that are to each other as the decimals are. */
function aligned(decimals) {
  const least = Math.min(...decimals.map(([, power]) => power));
  return decimals.map(([integer, power]) => integer * ten(power - least));
}

// -- the texts of equal parts: each true, and no two alike

/**
 * The edges low + i (high - low) / bins. One is written in full where that takes few decimals beyond
 * those that tell the edges apart; else it is cut off there, which "…" says.
 */
function edgesOf(low, high, bins) {
  const power = Math.min(0, low[1], high[1]);
  const [a, b] = aligned([low, high, [0n, power]]);
  const [first, step, denominator] = [a * bins, b - a, ten(-power) * bins];
  const decimals = decimalsOf(first, step, denominator);
  return (i) => {
    const number = first + BigInt(i) * step;
    const size = (number < 0n ? -number : number) * ten(decimals);
    const more = size % denominator ? "…" : "";
    return (number < 0n ? "-" : "") + written(size / denominator, decimals, more);
  };
}

const ten = (power) => 10n ** BigInt(power);

/** How many decimals the edges (first + i step) / denominator are written with. */
function decimalsOf(first, step, denominator) {
  let apart = 0;
  while (step * ten(apart) < denominator) apart += 1;
  const most = apart + MORE_DIGITS;
  for (let full = 0; full <= most; full++) {
    if ([first, step].every((one) => (one * ten(full)) % denominator === 0n)) return full;
  }
  return most - 1;
}

/** number / 10^decimals, with what follows marked by `more`. */
function written(number, decimals, more) {
  const digits = String(number);
  const power = digits.length - 1 - decimals;
  const bare = (text) => (more || !text.includes(".") ? text : text.replace(/\.?0+$/, "")) + more;
  if (number && power < SMALLEST_PLAIN) return `${bare(digits.replace(/^.(?=.)/, "$&."))}e${power}`;
  const padded = digits.padStart(decimals + 1, "0");
  const point = padded.length - decimals;
  return bare(decimals ? `${padded.slice(0, point)}.${padded.slice(point)}` : padded);
}
