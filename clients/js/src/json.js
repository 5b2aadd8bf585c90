/** JSON as Python writes it: canonical forms are bytes that both languages agree on. */

import { must } from "./errors.js";
import { sha256 } from "./number.js";

/** Members whose numbers are written with a point, however round they are. */
const REAL = /^(eps|m0$|limit$|spent|committed)/;

/** Canonical JSON: sorted names, no spaces, as UTF-8 text. */
export function canonical(plain, name) {
  if (typeof plain === "bigint" || (Number.isInteger(plain) && !REAL.test(name))) return String(plain);
  if (typeof plain === "number") return floatText(plain);
  if (Array.isArray(plain)) return `[${plain.map(canonical)}]`;
  if (plain === null || typeof plain !== "object") return JSON.stringify(plain);
  const members = Object.keys(plain).sort();
  return `{${members.map((one) => `${JSON.stringify(one)}:${canonical(plain[one], one)}`)}}`;
}

/** The shortest decimal that reads back as x, in Python's notation. */
export function floatText(x) {
  const size = Math.abs(x);
  // Exponents have two digits at least.
  if ((size && size < 1e-4) || size >= 1e16) return x.toExponential().replace(/e.(?=\d$)/, "$&0");
  return Number.isInteger(x) ? `${Object.is(x, -0) ? "-0" : x}.0` : String(x);
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[\w.+-]+/g;
// No text of a state has this character.
const MARK = "\u0000";

/** JSON with some of its tokens marked as texts. */
const marked = (text, isMarked) =>
  text.replace(TOKEN, (token) => (isMarked.test(token) ? `"\\u0000${token}"` : token));

/** Reads JSON; integers that a double cannot hold become BigInt. */
export function parse(text) {
  return JSON.parse(marked(text, /^-?\d{16,}$/), (_, part) => {
    if (part?.[0] !== MARK) return part;
    const exact = BigInt(part.slice(1));
    return exact > 2n ** 53n ? exact : Number(exact);
  });
}

/** Reads JSON of which integers alone are numbers: what has a point or an exponent is a text. */
export function parseIntegers(text) {
  // First as it is: marks would mend what is no number.
  JSON.parse(text);
  return JSON.parse(marked(text, /^-?\d+[.eE]/));
}

/** A state with its checksum, which tells damage, not forgery. */
export const sealed = async (plain) => ({ ...plain, checksum: await sha256(canonical(plain)) });

/** A state without its checksum, which must be its own. */
export async function unsealed({ checksum, ...plain }) {
  must(checksum === (await sha256(canonical(plain))));
  return plain;
}
