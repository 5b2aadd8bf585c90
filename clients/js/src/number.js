/** Small helpers for numbers, and their bytes in messages. */

/** Orders rows by the number that each begins with. */
export const byNumber = ([one], [other]) => one - other;

/** An amount for people: six digits at most. */
export const amountText = (amount) => String(Number(amount.toPrecision(6)));

/** The sum of numbers, in their order. */
export const sum = (numbers, first = 0) => numbers.reduce((total, one) => total + one, first);

/** How many bytes hold the integers up to `largest`. */
export const bytesFor = (largest) => Math.ceil(largest.toString(16).length / 2);

/** A number or BigInt in so many bytes, most significant first, as hexadecimal digits. */
export const bigEndian = (n, bytes) => n.toString(16).padStart(2 * bytes, "0");

export const hex = (bytes) => [...bytes].map((byte) => bigEndian(byte, 1)).join("");

/** The bytes that lower-case hexadecimal digits stand for, false if they do not. */
export const unhex = (text) =>
  /^([0-9a-f]{2})+$/.test(text) && new Uint8Array(text.match(/../g).map((digits) => parseInt(digits, 16)));

const UTF8 = new TextEncoder();

/** What Web Crypto makes of a text, as hexadecimal digits. */
export const digest = async (text, act) => hex(new Uint8Array(await act(UTF8.encode(text))));

export const sha256 = (text) => digest(text, (bytes) => crypto.subtle.digest("SHA-256", bytes));

/** A loss as the factor by which it shifts odds. */
export const factor = (eps) =>
  eps < 700 ? `e^${general(eps)} = ${general(Math.exp(eps))}` : `e^${general(eps)}`;

/** Four digits, as C's %.4g writes them. */
export function general(x) {
  const [digits, power] = x.toExponential(3).split("e");
  const bare = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power < 4) return bare(x.toFixed(3 - power));
  return `${bare(digits)}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}
