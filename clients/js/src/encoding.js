/**
 * Encodings: from a value under the user's key to a memo symbol, and from there to an answer.
 *
 * A kind of keys and a kind of answers make one. Keys are null, a number or BigInt, or a list of
 * numbers; in messages each number takes `width` bytes.
 */

import { isInteger } from "./check.js";
import { ascending, bigEndian, bitLength, bytesFor, hex, unhex } from "./number.js";

/** Symbols 0..g-1: the value itself, or its hash under the user's own key. */
export const symbolEncoding = (k, g, family) => ({
  ...(family ? hashed(family) : KEYLESS),
  memoSymbols: g,
  memoCells: Math.min(g, k),
  isAnswer: (y) => isInteger(y, 0, g - 1),
  first: (x) => x,
  draw(rng, x, [keep]) {
    if (rng.bernoulli(keep)) return x;
    // Uniform over the g - 1 others: a lie never equals the truth.
    const other = rng.below(g - 1);
    return other >= x ? other + 1 : other;
  },
  answerText: (y) => bigEndian(y, bytesFor(bitLength(g - 1))),
  answerPlain: (y) => y,
  answerFrom: (plain) => plain,
});

/** One bit a value. */
export const oneHot = (k) => ({ ...KEYLESS, ...bits(k), memoSymbols: k, memoCells: k });

/** d of b buckets, drawn once; one bit says for each whether it holds the value. */
export const sampledBuckets = (k, b, d) => ({
  ...buckets(k, b, d),
  ...bits(d),
  memoSymbols: d + 1,
  memoCells: Math.min(d + 1, b),
});

/** Answers are bits, eight to a byte, first bit lowest; at most one is set before the noise. */
function bits(size) {
  const bytes = bytesFor(size);
  return {
    isAnswer: (y) =>
      y instanceof Uint8Array && y.length === bytes && (size % 8 === 0 || y[bytes - 1] >> (size % 8) === 0),
    /** The bits before the first round; where no bucket holds the value none is set. */
    first(x) {
      const set = new Uint8Array(bytes);
      if (x < size) set[x >> 3] = 1 << (x & 7);
      return set;
    },
    draw(rng, kept, [set, unset]) {
      const drawn = new Uint8Array(bytes);
      for (let i = 0; i < size; i++) {
        const bit = (kept[i >> 3] >> (i & 7)) & 1;
        // Selected without a branch: time must not tell which bit was set.
        drawn[i >> 3] |= rng.bernoulli(bit * set + (1 - bit) * unset) << (i & 7);
      }
      return drawn;
    },
    answerText: hex,
    answerPlain: hex,
    answerFrom: unhex,
  };
}

// -- keys

const KEYLESS = {
  width: 0,
  keyBytes: 0,
  drawKey: () => null,
  isKey: (key) => key === null,
  memoIndex: (_, v) => v,
  keyPlain: (plain) => plain,
};

function hashed({ keyBits, draw, isKey, hash }) {
  const width = bytesFor(keyBits);
  return {
    width,
    keyBytes: width,
    drawKey: draw,
    isKey,
    memoIndex: hash,
    keyFrom: (text) => (keyBits > 53 ? BigInt : Number)(`0x${text}`),
    // A family of long keys has BigInts, however small one of them is.
    keyPlain: (plain) => (keyBits > 53 && Number.isSafeInteger(plain) ? BigInt(plain) : plain),
  };
}

function buckets(k, b, d) {
  const width = bytesFor(bitLength(b - 1));
  return {
    ...KEYLESS,
    width,
    keyBytes: d * width,
    drawKey(rng) {
      // Floyd's subset sampling: uniform, and with a bounded number of draws.
      const chosen = new Set();
      for (let newest = b - d; newest < b; newest++) {
        const candidate = rng.below(newest + 1);
        chosen.add(chosen.has(candidate) ? newest : candidate);
      }
      return [...chosen].sort(ascending);
    },
    isKey: (key) =>
      Array.isArray(key) &&
      key.length === d &&
      key.every((bucket, i) => isInteger(bucket, i ? key[i - 1] + 1 : 0, b - 1)),
    memoIndex(key, v) {
      // v b < 2^48: exact.
      const position = key.indexOf(Math.floor((v * b) / k));
      return position < 0 ? d : position;
    },
    keyFrom: (text) => text.match(RegExp(`.{${2 * width}}`, "g")).map((one) => parseInt(one, 16)),
  };
}

/** A key as hexadecimal digits. */
export const keyText = ({ width }, key) =>
  [key ?? []].flat().map((part) => bigEndian(part, width)).join("");
