/** JSON as Python writes it: canonical forms are bytes that both languages agree on. */

/** Members whose numbers are written with a point, however round they are. */
const REAL = /^(eps|m0$|limit$|spent)/;

/** Canonical JSON: sorted names, no spaces, as UTF-8 text. */
export function canonical(plain, name) {
  if (typeof plain === "bigint") return String(plain);
  if (typeof plain === "number" && (REAL.test(name) || !Number.isInteger(plain))) {
    return floatText(plain);
  }
  if (plain === null || typeof plain !== "object") return JSON.stringify(plain);
  if (Array.isArray(plain)) return `[${plain.map(canonical)}]`;
  const members = Object.keys(plain).sort();
  return `{${members.map((one) => `${JSON.stringify(one)}:${canonical(plain[one], one)}`)}}`;
}

/** The shortest decimal that reads back as x, in Python's notation. */
export function floatText(x) {
  const [digits, power] = x.toExponential().split("e");
  if (power < -4 || power >= 16) {
    return `${digits}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  }
  // JavaScript writes such numbers without an exponent only from 1e-6 on, which suffices.
  return Number.isInteger(x) ? `${x}.0` : String(x);
}

const MARK = "\u0000integer";
const STRING_OR_LONG = /"(?:[^"\\]|\\.)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

const isExact = (digits) => Math.abs(digits) <= 2 ** 53 && String(Number(digits)) === digits;

/** Reads JSON; integers that a double cannot hold become BigInt. */
export function parse(text) {
  const marked = text.replace(STRING_OR_LONG, (found) =>
    found[0] === '"' || isExact(found)
      ? found
      : `{"\\u0000integer":"${found}"}`,
  );
  return JSON.parse(marked, (_, part) => (part && part[MARK] ? BigInt(part[MARK]) : part));
}
