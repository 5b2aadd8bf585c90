/** Small helpers for numbers, and their bytes in messages. */

/** Bits that hold the integer 0 <= n < 2^53. */
export const bitLength = (n) => (n ? n.toString(2).length : 0);

export const ascending = (one, other) => one - other;

export const bytesFor = (bits) => Math.ceil(bits / 8);

export const hex = (bytes) => Array.from(bytes, (byte) => bigEndian(byte, 1)).join("");

/** The bytes that lower-case hexadecimal digits stand for, null if they do not. */
export const unhex = (text) =>
  /^([0-9a-f]{2})*$/.test(text)
    ? Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16))
    : null;

/** A number or BigInt in so many bytes, most significant first, as hexadecimal digits. */
export const bigEndian = (n, bytes) => n.toString(16).padStart(2 * bytes, "0");

const UTF8 = new TextEncoder();

export async function sha256(text) {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", UTF8.encode(text))));
}

export async function hmac256(key, text) {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", key, algorithm, false, ["sign"]);
  return hex(new Uint8Array(await crypto.subtle.sign("HMAC", imported, UTF8.encode(text))));
}
