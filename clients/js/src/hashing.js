/**
 * Hash families: what a user draws once, and the symbol of a value under it.
 *
 * A key is a number; of the affine family, whose keys have 62 bits, a BigInt.
 */

import { isInteger } from "./check.js";
import { must } from "./errors.js";
import { bytesFor } from "./number.js";

const LARGEST_TABLE = 2 ** 28;
const MERSENNE = 2 ** 31 - 1;

/** H_s(v) = <s, v> mod g over the digits of s and v in base g, g prime. */
function linear(k, g) {
  let size = g;
  while (size < k) size *= g;
  must(isPrime(g) && size * g <= LARGEST_TABLE, "g must be a prime, small enough for k; choose another");
  return {
    ...keysUpTo(size - 1, 1),
    memoIndex(key, v) {
      let total = 0;
      while (key && v) {
        total += (key % g) * (v % g);
        key = Math.floor(key / g);
        v = Math.floor(v / g);
      }
      return total % g;
    },
  };
}

/** Keys that are integers from `least` to `largest`, each as likely. */
export const keysUpTo = (largest, least = 0) => ({
  width: bytesFor(largest),
  drawKey: (rng) => least + rng.below(largest + 1 - least),
  isKey: (key) => isInteger(key, largest, least),
  keyFrom: (text) => Number(`0x${text}`),
});

/** H_{a,b}(v) = ((a v + b) mod P) mod g, P prime, 0 < a < P, 0 <= b < P; a v + b stays exact. */
const modular = (p, g, join, split) => ({
  drawKey(rng) {
    const a = 1 + rng.below(p - 1);
    return join(a, rng.below(p));
  },
  memoIndex(key, v) {
    const [a, b] = split(key);
    return ((a * v + b) % p) % g;
  },
});

/** P is the least prime that is neither below k nor below g; the key is (a - 1) P + b. */
function prime(k, g) {
  let p = Math.max(k, g);
  while (!isPrime(p)) p += 1;
  return {
    ...keysUpTo(p * (p - 1) - 1),
    ...modular(
      p,
      g,
      (a, b) => (a - 1) * p + b,
      (key) => [Math.floor(key / p) + 1, key % p],
    ),
  };
}

/** P = 2^31 - 1; the key is a 2^31 + b. */
function affine(k, g) {
  must(k <= 2 ** 22, "k must be at most 2^22 with hash affine; choose another");
  // JSON reads small ones as numbers.
  const split = (key) => [BigInt(key) >> 31n, BigInt(key) & BigInt(MERSENNE)].map(Number);
  return {
    ...modular(MERSENNE, g, (a, b) => (BigInt(a) << 31n) | BigInt(b), split),
    width: 8,
    isKey(key) {
      if (typeof key !== "bigint" && !isInteger(key)) return false;
      const [a, b] = split(key);
      return isInteger(a, MERSENNE - 1, 1) && b < MERSENNE;
    },
    keyFrom: (text) => BigInt(`0x${text}`),
  };
}

/** The 32-bit xxHash of the decimal digits of v, modulo g: to read along with existing tools. */
const xxhash = (k, g) => ({
  ...keysUpTo(2 ** 32 - 1),
  memoIndex(key, v) {
    const text = String(v);
    const mul = Math.imul;
    const rotate = (x, n) => (x << n) | (x >>> (32 - n));
    const byte = (i) => text.charCodeAt(i);
    let h = (key + 0x165667b1 + text.length) | 0;
    let i = 0;
    for (; i + 4 <= text.length; i += 4) {
      const word = byte(i) | (byte(i + 1) << 8) | (byte(i + 2) << 16) | (byte(i + 3) << 24);
      h = mul(rotate((h + mul(word, 0xc2b2ae3d)) | 0, 17), 0x27d4eb2f);
    }
    for (; i < text.length; i++) {
      h = mul(rotate((h + mul(byte(i), 0x165667b1)) | 0, 11), 0x9e3779b1);
    }
    h = mul(h ^ (h >>> 15), 0x85ebca77);
    h = mul(h ^ (h >>> 13), 0xc2b2ae3d);
    return ((h ^ (h >>> 16)) >>> 0) % g;
  },
});

function isPrime(g) {
  for (let divisor = 2; divisor * divisor <= g; divisor++) if (g % divisor === 0) return false;
  return g >= 2;
}

/** The families by name, each for k values and g symbols. */
export const FAMILIES = { affine, linear, prime, xxhash };
