/** The thirteen protocols: public rules that device and server share, derived from a specification. */

import * as check from "./check.js";
import { DomainError, ParameterError } from "./errors.js";
import {
  SCALE,
  isReachedAfterHalved,
  isReachedAfterSymmetric,
  keepContrast,
  largestKeep,
  secondBits,
  secondKeep,
  table,
  tableContrast,
} from "./exact.js";
import { hashFamily } from "./hashing.js";
import { canonical, Float } from "./json.js";
import { bigEndian, bitLength, bytesFor, hex, sha256, unhex } from "./number.js";

const LARGEST_K = 2 ** 24;
const LARGEST_G = 2 ** 20;
const VERSION = 1;

// -- encodings: from a value to a memo symbol, and from there to an answer

/** Answers are symbols 0..g-1: the value itself, or its hash under the user's own key. */
function symbolEncoding(k, g, family) {
  return {
    memoSymbols: g,
    memoCells: Math.min(g, k),
    keyBytes: family ? bytesFor(family.keyBits) : 0,
    drawKey: (rng) => (family ? family.draw(rng) : null),
    isKey: (key) => (family ? family.isKey(key) : key === null),
    memoIndex: (key, v) => (family ? family.hash(key, v) : v),
    isAnswer: (y) => Number.isSafeInteger(y) && 0 <= y && y < g,
    first: (x) => x,
    draw(rng, x, [keep]) {
      if (rng.bernoulli(keep)) return x;
      // Uniform over the g - 1 others: a lie never equals the truth.
      const other = rng.below(g - 1);
      return other >= x ? other + 1 : other;
    },
    keyText(key) {
      return family ? bigEndian(key, this.keyBytes) : "";
    },
    keyFrom(text) {
      return this.keyPlain(BigInt(`0x${text}`));
    },
    // A family of long keys has BigInts, however small one of them is.
    keyPlain(plain) {
      const isInteger = typeof plain === "bigint" || Number.isSafeInteger(plain);
      if (!family || !isInteger) return plain;
      return family.keyBits > 53 ? BigInt(plain) : Number(plain);
    },
    answerText: (y) => bigEndian(y, bytesFor(bitLength(g - 1))),
    answerPlain: (y) => y,
    answerFrom: (plain) => plain,
  };
}

/** Answers are bits, eight to a byte, first bit lowest; at most one is set before the noise. */
function bitEncoding(size, own) {
  const bytes = bytesFor(size);
  return {
    isAnswer: (y) =>
      y instanceof Uint8Array && y.length === bytes && (size % 8 === 0 || y[bytes - 1] >> (size % 8) === 0),
    /** The bits before the first round; where no bucket holds the value none is set. */
    first(x) {
      const bits = new Uint8Array(bytes);
      if (x < size) bits[x >> 3] = 1 << (x & 7);
      return bits;
    },
    draw(rng, bits, [set, unset]) {
      const drawn = new Uint8Array(bytes);
      for (let i = 0; i < size; i++) {
        const bit = (bits[i >> 3] >> (i & 7)) & 1;
        // Selected without a branch: time must not tell which bit was set.
        drawn[i >> 3] |= rng.bernoulli(bit * set + (1 - bit) * unset) << (i & 7);
      }
      return drawn;
    },
    answerText: hex,
    answerPlain: hex,
    answerFrom: unhex,
    keyPlain: (plain) => plain,
    ...own,
  };
}

/** One bit a value. */
const oneHot = (k) =>
  bitEncoding(k, {
    memoSymbols: k,
    memoCells: k,
    keyBytes: 0,
    drawKey: () => null,
    isKey: (key) => key === null,
    memoIndex: (_, v) => v,
    keyText: () => "",
  });

/** d of b buckets, drawn once; one bit says for each whether it holds the value. */
function sampledBuckets(k, b, d) {
  const width = bytesFor(bitLength(b - 1));
  const isBucket = (bucket) => Number.isSafeInteger(bucket) && 0 <= bucket && bucket < b;
  return bitEncoding(d, {
    memoSymbols: d + 1,
    memoCells: Math.min(d + 1, b),
    keyBytes: d * width,
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
      key.every((bucket, i) => isBucket(bucket) && (i === 0 || key[i - 1] < bucket)),
    memoIndex(key, v) {
      // v b < 2^48: exact.
      const position = key.indexOf(Math.floor((v * b) / k));
      return position < 0 ? d : position;
    },
    keyText: (key) => key.map((bucket) => bigEndian(bucket, width)).join(""),
    keyFrom: (text) => text.match(RegExp(`.{${2 * width}}`, "g")).map((one) => parseInt(one, 16)),
  });
}

// -- channels

const half = (eps) => [SCALE / 2, SCALE - largestKeep(eps, 2)];

function symmetric(eps) {
  const keep = largestKeep(eps, 2);
  return [keep, SCALE - keep];
}

// -- parameters: each reads and checks one member of a specification

const CALIBRATIONS = ["published", "tight"];
const PARAMETERS = {
  k: (spec) => check.integer("k", spec.k, 2, LARGEST_K),
  g: (spec) => check.integer("g", spec.g, 2, LARGEST_G),
  b: (spec) => check.integer("b", spec.b, 2, spec.k),
  d: (spec) => check.integer("d", spec.d, 1, spec.b),
  eps: (spec) => check.eps("eps", spec.eps),
  eps_inf: (spec) => check.eps("eps_inf", spec.eps_inf),
  eps_1(spec) {
    if (check.eps("eps_1", spec.eps_1) >= spec.eps_inf) {
      throw new ParameterError("eps_1 must be below eps_inf; lower it");
    }
  },
  hash: (spec) => check.choice("hash", spec.hash, ["affine", "linear", "prime", "xxhash"]),
  calibration: (spec) => check.choice("calibration", spec.calibration, CALIBRATIONS),
  // Independent answers are said by saying nothing.
  memo: (spec) => check.choice("memo", spec.memo, ["joint"]),
  m0(spec) {
    const identity = largestKeep(spec.eps_inf, spec.g ?? 2);
    const [whole] = table(identity, spec.g ?? 2);
    check.real("m0", spec.m0, 0, 1);
    if (!spec.memo || spec.m0 * SCALE >= SCALE - whole) {
      throw new ParameterError("m0 must be below all but the identity of a joint memo; leave it out");
    }
  },
};

// -- the registry

/** One round of symbols. */
const symbols = (parameters, symbolsOf) => ({
  parameters: ["k", "eps", ...parameters],
  encoding: (spec) => symbolEncoding(spec.k, symbolsOf(spec), familyOf(spec, symbolsOf(spec))),
  first: (spec) => [largestKeep(spec.eps, symbolsOf(spec))],
});

/** Two rounds of symbols. */
const symbolChain = (parameters, symbolsOf) => ({
  ...symbols([], symbolsOf),
  parameters: ["k", "eps_inf", "eps_1", "calibration", ...parameters],
  first: (spec) => [largestKeep(spec.eps_inf, symbolsOf(spec))],
  second(spec, first) {
    const g = symbolsOf(spec);
    const contrast = (spec.memo ? tableContrast : keepContrast)(g, first);
    return [secondKeep(contrast, spec.eps_inf, spec.eps_1, g, spec.calibration)];
  },
});

/** Two rounds of hashed symbols, of which the first may be one table for life. */
const loloha = (parameters, symbolsOf) => ({
  ...symbolChain(["hash", ...parameters], symbolsOf),
  optional: ["memo", "m0"],
  first(spec) {
    const g = symbolsOf(spec);
    const keep = largestKeep(spec.eps_inf, g);
    return spec.memo ? table(keep, g, spec.m0) : [keep];
  },
  spent: (spec, answers) => tableLoss(spec.eps_inf, symbolsOf(spec), spec.m0, answers),
});

/** What so many answers of one table spend: B_m = ln(1 + w g! / ((g-m)! u)), rounded up. */
function tableLoss(epsInf, g, m0, answers) {
  if (answers < 2) return answers * epsInf;
  const u = Math.exp(-epsInf);
  const total = 1 + (g - 1) * u;
  const [p, q] = [1 / total, u / total];
  const permuted =
    m0 === undefined ? Math.log(q) + Math.log(g - 2 + g * q) : Math.log(g * q - m0);
  let odds = Math.log(p - q) - permuted;
  for (let i = 0; i < answers; i++) odds += Math.log(g - i);
  const loss = Math.max(odds, 0) + Math.log1p(Math.exp(-Math.abs(odds)));
  return Math.max(epsInf, loss * (1 + 2 ** -50));
}

const familyOf = (spec, g) => (spec.hash ? hashFamily(spec.hash, spec.k, g) : null);

/** One round of bits. */
const bits = (first) => ({
  parameters: ["k", "eps"],
  encoding: (spec) => oneHot(spec.k),
  first: (spec) => first(spec.eps),
});

/** Two rounds of bits; the second keeps a set bit half the time where that bounds its reach. */
const bitChain = (first, isReached) => ({
  ...bits(),
  parameters: ["k", "eps_inf", "eps_1"],
  first: (spec) => first(spec.eps_inf),
  second(spec, thresholds) {
    if (isReached && !isReached(spec.eps_inf, spec.eps_1)) {
      throw new ParameterError("eps_1 must be within reach of the second round; lower it");
    }
    return secondBits(thresholds, spec.eps_1, !isReached);
  },
});

const values = (spec) => spec.k;
const two = () => 2;
const asked = (spec) => spec.g;

const REGISTRY = {
  grr: symbols([], values),
  blh: symbols(["hash"], two),
  olh: symbols(["hash", "g", "calibration"], asked),
  sue: bits((eps) => symmetric(eps / 2)),
  oue: bits(half),
  rappor: bitChain((eps) => symmetric(eps / 2)),
  "l-osue": bitChain(half),
  "l-oue": bitChain(half, isReachedAfterHalved),
  "l-soue": bitChain((eps) => symmetric(eps / 2), isReachedAfterSymmetric),
  "l-grr": symbolChain([], values),
  biloloha: loloha([], two),
  ololoha: loloha(["g"], asked),
  dbitflippm: {
    parameters: ["k", "eps_inf", "b", "d", "calibration"],
    encoding: (spec) => sampledBuckets(spec.k, spec.b, spec.d),
    // With one sampled bucket two patterns differ in one bit, else in two.
    first: (spec) =>
      symmetric(spec.d === 1 && spec.calibration === "tight" ? spec.eps_inf : spec.eps_inf / 2),
  },
};

/** Names of the protocols. */
export const PROTOCOLS = Object.keys(REGISTRY);

/** Rules of one protocol for one domain and one budget; immutable. */
export class Protocol {
  /** @param {object} spec what `to_dict` gives in Python: type, version and every parameter. */
  constructor(spec) {
    const rules = check.isObject(spec) && Object.hasOwn(REGISTRY, spec.type) && REGISTRY[spec.type];
    if (!rules) throw new ParameterError(`protocol must be one of ${PROTOCOLS}; choose one`);
    if (spec.version !== VERSION) {
      throw new ParameterError(`version must be ${VERSION}; use a matching release`);
    }
    const optional = rules.optional ?? [];
    check.members("protocol", spec, ["type", "version", ...rules.parameters], optional);
    for (const name of rules.parameters) PARAMETERS[name](spec);
    for (const name of optional) if (name in spec) PARAMETERS[name](spec);
    this.name = spec.type;
    this.spec = Object.freeze({ ...spec });
    this.k = spec.k;
    this.longitudinal = "eps_inf" in spec;
    /** Bound on all reports of one value, for ever; for one-round rules on one report. */
    this.loss = this.longitudinal ? spec.eps_inf : spec.eps;
    this.encoding = rules.encoding(spec);
    /** Thresholds of both rounds, out of 2^53; the second is null where there is none. */
    this.first = rules.first(spec);
    this.second = rules.second ? rules.second(spec, this.first) : null;
    /** Whether the answers to all memo symbols are drawn together, at enrolment. */
    this.joint = spec.memo === "joint";
    /** Budget that so many kept answers spend; for one-round rules so many reports. */
    this.spent = (answers) => (this.joint ? rules.spent(spec, answers) : answers * this.loss);
    const cells = this.encoding.memoCells;
    /** Most that a user can ever spend. */
    this.cap = this.longitudinal ? this.spent(cells) : Infinity;
    if (this.joint && this.cap > cells * this.loss * (1 + 1e-9)) {
      throw new ParameterError("memo must be independent where one table spends more; leave it out");
    }
    Object.freeze(this);
  }

  /** What a user keeps for ever. */
  enroll(rng) {
    return this.encoding.drawKey(rng);
  }

  /** The answers to all memo symbols, drawn at enrolment; null where each waits for its use. */
  remember(rng) {
    if (!this.joint) return null;
    const g = this.encoding.memoSymbols;
    const [identity, constant] = this.first;
    const answers = Array.from({ length: g }, (_, x) => x);
    if (rng.bernoulli(identity)) return answers;
    if (rng.bernoulli(constant)) return answers.fill(rng.below(g));
    for (let i = g - 1; i > 0; i--) {
      const j = rng.below(i + 1);
      [answers[i], answers[j]] = [answers[j], answers[i]];
    }
    return answers;
  }

  /** The answer to a memo symbol that is kept. */
  permanent(rng, x) {
    return this.encoding.draw(rng, this.encoding.first(x), this.first);
  }

  /** The report of one round, drawn afresh from the kept answer. */
  instant(rng, kept) {
    return this.second ? this.encoding.draw(rng, kept, this.second) : kept;
  }

  checkValue(value) {
    if (!Number.isSafeInteger(value) || value < 0 || value >= this.k) {
      throw new DomainError(
        `value must be an integer in 0..${this.k - 1}, got another (not shown: it is private)`,
      );
    }
    return value;
  }

  /** The specification, ready for canonical JSON. */
  plain() {
    const isReal = (name) => name.startsWith("eps") || name === "m0";
    return Object.fromEntries(
      Object.entries(this.spec).map(([name, value]) => [name, isReal(name) ? new Float(value) : value]),
    );
  }

  /** SHA-256 of the canonical specification. */
  fingerprint() {
    return sha256(canonical(this.plain()));
  }
}
