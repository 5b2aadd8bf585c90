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
    must(left, ParameterError, "m0 must be below what a joint memo leaves");
  },
};

// -- the registry

// Each has: its parameters, checked in this order; the encoding; the thresholds of the first round
// and, where there is an eps_1, of the second, for g symbols.

const ONE_ROUND = ["k", "eps"];
const TWO_ROUNDS = ["k", "eps_inf", "eps_1"];

/** Symbols, of which `symbolsOf` a specification says how many; the first round may be a table for life. */
const symbols = (parameters, symbolsOf, optional) => ({
  parameters,
  optional,
  encoding(spec) {
    const g = symbolsOf(spec);
    return symbolEncoding(spec.k, g, spec.hash && hashFamily(spec.hash, spec.k, g));
  },
  first({ memo, m0 }, eps, g) {
    const keep = largestKeep(eps, g);
    return memo ? table(keep, g, m0) : [keep];
  },
  second({ memo, eps_inf, eps_1, calibration }, first, g) {
    const contrast = (memo ? tableContrast : keepContrast)(g, first);
    return [secondKeep(contrast, eps_inf, eps_1, g, calibration)];
  },
});

/** Two rounds of them. */
const symbolChain = (parameters, symbolsOf, optional) =>
  symbols([...TWO_ROUNDS, "calibration", ...parameters], symbolsOf, optional);

/** Two rounds of hashed ones. */
const loloha = (parameters, symbolsOf) =>
  symbolChain(["hash", ...parameters], symbolsOf, ["memo", "m0"]);

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

/** Bits; the second round keeps a set bit half the time where that bounds its reach. */
const bits = (parameters, channel, isReached) => ({
  parameters,
  encoding: (spec) => oneHot(spec.k),
  first: (spec, eps) => channel(eps),
  second({ eps_inf, eps_1 }, first) {
    const reached = !isReached || isReached(eps_inf, eps_1);
    must(reached, ParameterError, "eps_1 must be within reach of the second round");
    return secondBits(first, eps_1, !isReached);
  },
});

const values = (spec) => spec.k;
const two = () => 2;
const asked = (spec) => spec.g;

const REGISTRY = {
  grr: symbols(ONE_ROUND, values),
  blh: symbols([...ONE_ROUND, "hash"], two),
  olh: symbols([...ONE_ROUND, "hash", "g", "calibration"], asked),
  sue: bits(ONE_ROUND, symmetricHalf),
  oue: bits(ONE_ROUND, half),
  rappor: bits(TWO_ROUNDS, symmetricHalf),
  "l-osue": bits(TWO_ROUNDS, half),
  "l-oue": bits(TWO_ROUNDS, half, isReachedAfterHalved),
  "l-soue": bits(TWO_ROUNDS, symmetricHalf, isReachedAfterSymmetric),
  "l-grr": symbolChain([], values),
  biloloha: loloha([], two),
  ololoha: loloha(["g"], asked),
  dbitflippm: {
    parameters: ["k", "eps_inf", "b", "d", "calibration"],
    encoding: (spec) => sampledBuckets(spec.k, spec.b, spec.d),
    // With one sampled bucket two patterns differ in one bit, else in two.
    first: ({ d, calibration }, eps) =>
      (d === 1 && calibration === "tight" ? symmetric : symmetricHalf)(eps),
  },
};

/** Names of the protocols. */
export const PROTOCOLS = Object.keys(REGISTRY);

/** Rules of one protocol for one domain and one budget; immutable. */
export class Protocol {
  /** @param {object} spec what `to_dict` gives in Python: type, version and every parameter. */
  constructor(spec) {
    const rules = REGISTRY[check.choice("protocol", spec?.type, PROTOCOLS)];
    check.choice("version", spec.version, [1]);
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
    const { memoSymbols, memoCells } = this.encoding;
    /** Thresholds of both rounds, out of 2^53; the second is null where there is none. */
    this.first = rules.first(spec, this.loss, memoSymbols);
    this.second = "eps_1" in spec ? rules.second(spec, this.first, memoSymbols) : null;
    /** Whether the answers to all memo symbols are drawn together, at enrolment. */
    this.joint = "memo" in spec;
    /** Budget that so many kept answers spend; for one-round rules so many reports. */
    this.spent = (answers) =>
      this.joint ? tableLoss(this.loss, memoSymbols, spec.m0, answers) : answers * this.loss;
    /** Most that a user can ever spend. */
    this.cap = this.longitudinal ? this.spent(memoCells) : Infinity;
    const worth = !this.joint || this.cap <= memoCells * this.loss * (1 + 1e-9);
    must(worth, ParameterError, "memo must be independent: one table spends more");
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
    must(holds, DomainError, "value must be the index of a label (not shown)");
  }

  /** SHA-256 of the canonical specification. */
  fingerprint() {
    return sha256(canonical(this.spec));
  }
}
