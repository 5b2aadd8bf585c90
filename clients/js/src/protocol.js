/** The thirteen protocols: public rules that device and server share, derived from a specification. */

import * as check from "./check.js";
import { oneHot, sampledBuckets, symbolEncoding } from "./encoding.js";
import { DomainError, ParameterError, must } from "./errors.js";
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
import { HASHES, hashFamily } from "./hashing.js";
import { canonical } from "./json.js";
import { sha256 } from "./number.js";

// -- channels

const half = (eps) => [SCALE / 2, SCALE - largestKeep(eps, 2)];

function symmetric(eps) {
  const keep = largestKeep(eps, 2);
  return [keep, SCALE - keep];
}

const symmetricHalf = (eps) => symmetric(eps / 2);

// -- parameters: each checks one member of a specification

const integer = (low, high) => (name, spec) => check.integer(name, spec[name], low, spec[high] ?? high);
const eps = (name, spec) => check.real(name, spec[name], 1e-6, 700);
const choice = (...options) => (name, spec) => check.choice(name, spec[name], options);

const PARAMETERS = {
  k: integer(2, 2 ** 24),
  g: integer(2, 2 ** 20),
  b: integer(2, "k"),
  d: integer(1, "b"),
  eps,
  eps_inf: eps,
  eps_1(name, spec) {
    must(eps(name, spec) < spec.eps_inf, ParameterError, "eps_1 must be below eps_inf");
  },
  hash: choice(...HASHES),
  calibration: choice("published", "tight"),
  // Independent answers are said by saying nothing.
  memo: choice("joint"),
  m0(name, spec) {
    const [identity] = table(largestKeep(spec.eps_inf, spec.g ?? 2), spec.g ?? 2);
    const left = spec.memo && check.real(name, spec.m0, 0, 1) * SCALE < SCALE - identity;
    must(left, ParameterError, "m0 must be below all but the identity of a joint memo");
  },
};

// -- the registry

/** One round of symbols. */
const symbols = (parameters, symbolsOf) => ({
  parameters: ["k", "eps", ...parameters],
  encoding(spec) {
    const g = symbolsOf(spec);
    return symbolEncoding(spec.k, g, spec.hash && hashFamily(spec.hash, spec.k, g));
  },
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
    const reached = !isReached || isReached(spec.eps_inf, spec.eps_1);
    must(reached, ParameterError, "eps_1 must be within reach of the second round");
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
  sue: bits(symmetricHalf),
  oue: bits(half),
  rappor: bitChain(symmetricHalf),
  "l-osue": bitChain(half),
  "l-oue": bitChain(half, isReachedAfterHalved),
  "l-soue": bitChain(symmetricHalf, isReachedAfterSymmetric),
  "l-grr": symbolChain([], values),
  biloloha: loloha([], two),
  ololoha: loloha(["g"], asked),
  dbitflippm: {
    parameters: ["k", "eps_inf", "b", "d", "calibration"],
    encoding: (spec) => sampledBuckets(spec.k, spec.b, spec.d),
    // With one sampled bucket two patterns differ in one bit, else in two.
    first: ({ d, calibration, eps_inf }) =>
      (d === 1 && calibration === "tight" ? symmetric : symmetricHalf)(eps_inf),
  },
};

/** Names of the protocols. */
export const PROTOCOLS = Object.keys(REGISTRY);

/** Rules of one protocol for one domain and one budget; immutable. */
export class Protocol {
  /** @param {object} spec what `to_dict` gives in Python: type, version and every parameter. */
  constructor(spec) {
    const rules = check.isObject(spec) && Object.hasOwn(REGISTRY, spec.type) && REGISTRY[spec.type];
    must(rules, ParameterError, `protocol must be one of ${PROTOCOLS}`);
    must(spec.version === 1, ParameterError, "version must be 1; use a matching release");
    const { parameters, optional = [] } = rules;
    check.members("protocol", spec, ["type", "version", ...parameters], optional);
    for (const name of [...parameters, ...optional]) {
      if (name in spec) PARAMETERS[name](name, spec);
    }
    this.name = spec.type;
    this.spec = Object.freeze({ ...spec });
    this.k = spec.k;
    this.longitudinal = "eps_inf" in spec;
    /** Bound on all reports of one value, for ever; for one-round rules on one report. */
    this.loss = spec.eps_inf ?? spec.eps;
    this.encoding = rules.encoding(spec);
    /** Thresholds of both rounds, out of 2^53; the second is null where there is none. */
    this.first = rules.first(spec);
    this.second = rules.second?.(spec, this.first) ?? null;
    /** Whether the answers to all memo symbols are drawn together, at enrolment. */
    this.joint = "memo" in spec;
    /** Budget that so many kept answers spend; for one-round rules so many reports. */
    this.spent = (answers) => (this.joint ? rules.spent(spec, answers) : answers * this.loss);
    const cells = this.encoding.memoCells;
    /** Most that a user can ever spend. */
    this.cap = this.longitudinal ? this.spent(cells) : Infinity;
    const worth = !this.joint || this.cap <= cells * this.loss * (1 + 1e-9);
    must(worth, ParameterError, "memo must be independent where one table spends more");
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
    const holds = check.isInteger(value, 0, this.k - 1);
    must(holds, DomainError, "value must be an index of a label, got another (not shown: it is private)");
  }

  /** SHA-256 of the canonical specification. */
  fingerprint() {
    return sha256(canonical(this.spec));
  }
}
