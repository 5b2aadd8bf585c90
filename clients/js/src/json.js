/** JSON as Python writes it: canonical forms are bytes that both languages agree on. */

/** A number that is written with a point, however round it is. */
export class Float {
  constructor(number) {
    this.number = number;
  }
}

/** Canonical JSON: sorted names, no spaces, as UTF-8 text. */
export function canonical(plain) {
  if (plain instanceof Float) return floatText(plain.number);
  if (typeof plain === "bigint") return String(plain);
  if (Array.isArray(plain)) return `[${plain.map(canonical)}]`;
  if (plain !== null && typeof plain === "object") {
    const members = Object.keys(plain).sort();
    return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(plain[name])}`)}}`;
  }
  return JSON.stringify(plain);
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
