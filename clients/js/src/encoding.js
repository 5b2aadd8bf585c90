/**
 * Encodings: from a value under the user's key to a memo symbol, and from there to an answer.
 *
 * A kind of keys and a kind of answers make one. Keys are null, a number or BigInt, or a list of
 * numbers; in messages each number takes `width` bytes.
 */

import { isInteger } from "./check.js";
import { must } from "./errors.js";
import { FAMILIES, keysUpTo } from "./hashing.js";
import { bigEndian, bytesFor, hex, unhex } from "./number.js";

/** How many symbols a specification has: values, unless they are hashed. */
export const symbolsOf = ({ k, g, hash, target }) => g ?? (hash || target ? 2 : k);

/** Symbols 0..g-1: the value itself, its hash under the user's own key, or its side of a threshold. */
export function symbolEncoding(spec) {
  const g = symbolsOf(spec);
  return {
    ...KEYLESS,
    ...FAMILIES[spec.hash]?.(spec.k, g),
    ...(spec.target && thresholds(spec)),
    memoSymbols: g,
    memoCells: Math.min(g, spec.k),
    isAnswer: (y) => isInteger(y, g - 1),
    certain: itself,
    draw(rng, x, [keep]) {
      if (rng.bernoulli(keep)) return x;
      // Uniform over the g - 1 others: a lie never equals the truth.
      const other = rng.below(g - 1);
      return other >= x ? other + 1 : other;
    },
    answerText: (y) => bigEndian(y, bytesFor(g - 1)),
    answerOf: (text) => Number(`0x${text}`),
    answerPlain: itself,
    answerFrom: itself,
  };
}

/** One bit a value. */
export const oneHot = ({ k }) => ({ ...KEYLESS, ...bits(k), memoSymbols: k, memoCells: k });

/** d of b buckets, drawn once; one bit says for each whether it holds the value. */
export const sampledBuckets = ({ k, b, d }) => ({
  ...KEYLESS,
  ...buckets(k, b, d),
  ...bits(d),
  memoSymbols: d + 1,
  memoCells: Math.min(d + 1, b),
});

const itself = (one) => one;

/** Answers are bits, eight to a byte, first bit lowest; at most one is set before the noise. */
function bits(size) {
  const none = () => new Uint8Array(Math.ceil(size / 8));
  return {
    isAnswer(plain) {
      const y = unhex(plain);
      return y.length === none().length && y.at(-1) >> (((size - 1) % 8) + 1) === 0;
    },
    /** The bits before the first round; where no bucket holds the value none is set. */
    certain(x) {
      const set = none();
      if (x < size) set[x >> 3] = 1 << (x & 7);
      return set;
    },
    draw(rng, memo, [set, unset]) {
      const drawn = none();
      for (let i = 0; i < size; i++) {
        const bit = (memo[i >> 3] >> (i & 7)) & 1;
        // Selected without a branch: time must not tell which bit was set.
        drawn[i >> 3] |= rng.bernoulli(bit * set + (1 - bit) * unset) << (i & 7);
      }
      return drawn;
    },
    answerText: hex,
    answerOf: itself,
    answerPlain: hex,
    answerFrom: unhex,
  };
}

// -- keys

const KEYLESS = {
  width: 0,
  drawKey: () => null,
  isKey: (key) => key === null,
  memoIndex: (_, v) => v,
  sent: itself,
};

/** A threshold from 1 to k - 1; where the mean alone is asked for it stays on the device. */
const thresholds = ({ k, target }) => ({
  ...keysUpTo(k - 1, 1),
  memoIndex: (key, v) => Number(v >= key),
  ...(target === "mean" && { width: 0, sent: () => null }),
});

function buckets(k, b, d) {
  const width = bytesFor(b - 1);
  return {
    width,
    drawKey(rng) {
      // Floyd's subset sampling: uniform, and with a bounded number of draws.
      const chosen = new Set();
      for (let newest = b - d; newest < b; newest++) {
        const candidate = rng.below(newest + 1);
        chosen.add(chosen.has(candidate) ? newest : candidate);
      }
      return [...chosen].sort((one, other) => one - other);
    },
    isKey: (key) =>
      Array.isArray(key) &&
      key.length === d &&
      key.every((bucket, i) => isInteger(bucket, b - 1, i && key[i - 1] + 1)),
    memoIndex(key, v) {
      // v b < 2^48: exact.
      const position = key.indexOf(Math.floor((v * b) / k));
      return position < 0 ? d : position;
    },
    keyFrom: (text) => text.match(RegExp(`.{${2 * width}}`, "g")).map((one) => Number(`0x${one}`)),
  };
}

/** The key that a message has as hexadecimal digits, undefined for none; of every digit, and no other. */
export function keyOf(encoding, text) {
  const key = text === undefined ? null : encoding.keyFrom(text);
  must(encoding.isKey(key) && keyText(encoding, key) === (text ?? ""));
  return key;
}

/** A key as hexadecimal digits, none for no key. */
export const keyText = ({ width }, key) =>
  [key ?? []].flat().map((part) => bigEndian(part, width)).join("");
