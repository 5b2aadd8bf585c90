/**
 * Hash families: what a user draws once, and the symbol of a value under it.
 *
 * A key is a number; of the affine family, whose keys have 62 bits, a BigInt.
 */

import { isInteger } from "./check.js";
import { ParameterError, must } from "./errors.js";
import { bitLength } from "./number.js";

const LARGEST_TABLE = 2 ** 28;
const MERSENNE = 2 ** 31 - 1;

/** H_s(v) = <s, v> mod g over the digits of s and v in base g, g prime. */
function linear(k, g) {
  let size = g;
  while (size < k) size *= g;
  must(isPrime(g) && size * g <= LARGEST_TABLE, ParameterError, "g must be a smaller prime, or hash affine");
  return {
    keyBits: bitLength(size - 1),
    draw: (rng) => 1 + rng.below(size - 1),
    isKey: (key) => isInteger(key, 1, size - 1),
    hash(key, v) {
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

/** H_{a,b}(v) = ((a v + b) mod P) mod g, P prime, 0 < a < P, 0 <= b < P; a v + b stays exact. */
const modular = (p, g, { join, split, ...own }) => ({
  draw(rng) {
    const a = 1 + rng.below(p - 1);
    return join(a, rng.below(p));
  },
  hash(key, v) {
    const [a, b] = split(key);
    return ((a * v + b) % p) % g;
  },
  ...own,
});

/** P is the least prime that is neither below k nor below g; the key is (a - 1) P + b. */
function prime(k, g) {
  let p = Math.max(k, g);
  while (!isPrime(p)) p += 1;
  const last = p * (p - 1) - 1;
  return modular(p, g, {
    keyBits: bitLength(last),
    isKey: (key) => isInteger(key, 0, last),
    join: (a, b) => (a - 1) * p + b,
    split: (key) => [Math.floor(key / p) + 1, key % p],
  });
}

/** P = 2^31 - 1; the key is a 2^31 + b. */
function affine(k, g) {
  const split = (key) => [Number(key >> 31n), Number(key & BigInt(MERSENNE))];
  return modular(MERSENNE, g, {
    keyBits: 62,
    isKey(key) {
      if (typeof key !== "bigint") return false;
      const [a, b] = split(key);
      return 1 <= a && a < MERSENNE && b < MERSENNE;
    },
    join: (a, b) => (BigInt(a) << 31n) | BigInt(b),
    split,
  });
}

/** xxh32 of the decimal digits of v, modulo g: to read along with existing tools. */
const xxhash = (k, g) => ({
  keyBits: 32,
  draw: (rng) => rng.below(2 ** 32),
  isKey: (key) => isInteger(key, 0, 2 ** 32 - 1),
  hash: (key, v) => xxh32(String(v), key) % g,
});

/** The 32-bit xxHash of fewer than 16 ASCII characters. */
function xxh32(text, seed) {
  const mul = Math.imul;
  const rotate = (x, n) => (x << n) | (x >>> (32 - n));
  const byte = (i) => text.charCodeAt(i);
  let h = (seed + 0x165667b1 + text.length) | 0;
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
  return (h ^ (h >>> 16)) >>> 0;
}

function isPrime(g) {
  for (let divisor = 2; divisor * divisor <= g; divisor++) if (g % divisor === 0) return false;
  return g >= 2;
}

const FAMILIES = { affine, linear, prime, xxhash };

/** Names of the families. */
export const HASHES = Object.keys(FAMILIES);

/** The family called `name`, one of `HASHES`, for k values and g symbols. */
export function hashFamily(name, k, g) {
  must(name !== "affine" || k <= 2 ** 22, ParameterError, "k must be at most 2^22, or hash another");
  return FAMILIES[name](k, g);
}
