/** The fourteen protocols: public rules that device and server share, derived from a specification. */

import { choice, given, integer, members, optional, real } from "./check.js";
import { oneHot, sampledBuckets, symbolEncoding, symbolsOf } from "./encoding.js";
import { must } from "./errors.js";
import {
  SCALE,
  SMALLER_EPS_1,
  firstSymbols,
  largestKeep,
  reachOfHalf,
  reachOfSymmetric,
  secondBits,
  secondSymbols,
  table,
} from "./exact.js";
import { FAMILIES } from "./hashing.js";
import { canonical } from "./json.js";
import { sha256, sum } from "./number.js";

// -- channels of bits: thresholds of a set and of an unset one

function symmetric(eps) {
  const keep = largestKeep(eps, 2);
  return [keep, SCALE - keep];
}

const symmetricHalf = (eps) => symmetric(eps / 2);

const half = (eps) => [SCALE / 2, symmetric(eps)[1]];

// -- the members of a specification

const eps = real(1e-6, 700);

const PARAMETERS = {
  type: (name, type) => type,
  version: choice(1),
  k: integer(2, 2 ** 24),
  g: integer(2, 2 ** 20),
  b: integer(2, "k"),
  d: integer(1, "b"),
  eps,
  eps_inf: eps,
  eps_1(name, value, { eps_inf }) {
    must(eps(name, value) < eps_inf, SMALLER_EPS_1);
  },
  hash: choice(...Object.keys(FAMILIES)),
  calibration: choice("published", "tight"),
  target: choice("distribution", "mean"),
  // Independent answers are the default, which documents leave out.
  memo: optional(choice("joint")),
  m0: optional((name, value, spec) => {
    const [identity] = table(spec.eps_inf, symbolsOf(spec));
    const left = spec.memo && real(0, 1)(name, value) * SCALE < SCALE - identity;
    must(left, "m0 must be below all that a joint memo leaves beside the identity; lower it");
  }),
};

// -- the registry

// Each has: its parameters, checked in this order; the encoding; the thresholds of the first round
// and, where there is an eps_1, of the second, for g symbols.

const ONE_ROUND = ["k", "eps"];
const TWO_ROUNDS = ["k", "eps_inf", "eps_1"];

/** Symbols; the first round may be drawn jointly. */
const symbols = (...parameters) => ({
  parameters,
  encodingOf: symbolEncoding,
  firstOf: firstSymbols,
  secondOf: secondSymbols,
});

/** Bits. */
const bits = (parameters, channel, reach) => ({
  parameters,
  encodingOf: oneHot,
  firstOf: (spec, eps) => channel(eps),
  secondOf: secondBits(reach),
});

const REGISTRY = {
  grr: symbols(...ONE_ROUND),
  blh: symbols(...ONE_ROUND, "hash"),
  olh: symbols(...ONE_ROUND, "hash", "g", "calibration"),
  sue: bits(ONE_ROUND, symmetricHalf),
  oue: bits(ONE_ROUND, half),
  rappor: bits(TWO_ROUNDS, symmetricHalf),
  "l-osue": bits(TWO_ROUNDS, half),
  "l-oue": bits(TWO_ROUNDS, half, reachOfHalf),
  "l-soue": bits(TWO_ROUNDS, symmetricHalf, reachOfSymmetric),
  "l-grr": symbols(...TWO_ROUNDS, "calibration"),
  biloloha: symbols(...TWO_ROUNDS, "calibration", "hash", "memo", "m0"),
  ololoha: symbols(...TWO_ROUNDS, "calibration", "hash", "g", "memo", "m0"),
  onebit: symbols(...TWO_ROUNDS, "target"),
  dbitflippm: {
    parameters: ["k", "eps_inf", "b", "d", "calibration"],
    encodingOf: sampledBuckets,
    // With one sampled bucket two patterns differ in one bit, else in two.
    firstOf: ({ d, calibration }, eps) => symmetric(d === 1 && calibration === "tight" ? eps : eps / 2),
  },
};

/** Names of the protocols. */
export const PROTOCOLS = Object.keys(REGISTRY);

/** Rules of one protocol for one domain and one budget; immutable. */
export class Protocol {
  /** @param {object} plain what `to_dict` gives in Python: type, version and every parameter. */
  constructor(plain) {
    const spec = given("protocol", plain);
    const { parameters, encodingOf, firstOf, secondOf } = 
      REGISTRY[choice(...PROTOCOLS)("protocol", spec?.type)];
    members(spec, PARAMETERS, ["type", "version", ...parameters]);
    const { type, k, eps, eps_inf, eps_1, memo } = spec;
    const encoding = encodingOf(spec);
    const { memoSymbols, memoCells } = encoding;
    /** Bound on all reports of one value, for ever; for one-round protocols on one report. */
    const loss = eps_inf ?? eps;
    /** Thresholds of both rounds, out of 2^53; the second is null where there is none. */
    const first = firstOf(spec, loss, memoSymbols);
    Object.assign(this, {
      name: type,
      spec: Object.freeze({ ...spec }),
      k,
      longitudinal: !eps,
      loss,
      encoding,
      first,
      second: eps_1 ? secondOf(spec, first, memoSymbols) : null,
    });
    /** What a report commits, where the cap does not. */
    this.perReport = eps ?? 0;
    /** Most that a user can ever spend. */
    this.cap = eps ? Infinity : this.spentBy(memoCells);
    const worth = !memo || this.cap <= memoCells * loss * (1 + 1e-9);
    must(worth, "memo must be left out: here one table spends more than independent answers");
    Object.freeze(this);
  }

  /**
   * Budget that so many permanent answers spend; for one-round protocols so many reports. Those of one table
   * spend B_m = ln(1 + (e^eps - 1) g! / ((g-m)! (g - m0/q))), rounded up.
   */
  spentBy(answers) {
    const { spec, loss, encoding } = this;
    const { m0 } = spec;
    const g = encoding.memoSymbols;
    if (!spec.memo || answers < 2 || (g === 2 && m0 === undefined)) return answers * loss;
    const u = Math.exp(-loss);
    const q = u / (1 + (g - 1) * u);
    const rest = m0 === undefined ? g - 2 + g * q : (g * q - m0) / q;
    const terms = [loss, Math.log(-Math.expm1(-loss)), -Math.log(rest)];
    for (let i = 0; i < answers; i++) terms.push(Math.log(g - i));
    const off = 2 ** -49 * (sum(terms.map(Math.abs)) + g / rest);
    // Compensated: with thousands of terms a limit would cover in Python what it does not here.
    let logExcess = 0;
    let lost = 0;
    for (const term of terms) {
      const next = logExcess + term;
      lost += Math.abs(logExcess) < Math.abs(term) ? term - next + logExcess : logExcess - next + term;
      logExcess = next;
    }
    logExcess += lost;
    const spent = Math.max(logExcess, 0) + Math.log1p(Math.exp(-Math.abs(logExcess)));
    return Math.max(loss, spent * (1 + 2 ** -50) + Math.min(1, spent) * off);
  }

  /** The answers to all memo symbols, where they are drawn together, at enrolment. */
  drawTable(rng) {
    const [identity, constant] = this.first;
    const answers = [...Array(this.encoding.memoSymbols).keys()];
    if (rng.bernoulli(identity)) return answers;
    if (rng.bernoulli(constant)) return answers.fill(rng.below(answers.length));
    for (let i = answers.length - 1; i > 0; i--) {
      const j = rng.below(i + 1);
      [answers[i], answers[j]] = [answers[j], answers[i]];
    }
    return answers;
  }

  /** SHA-256 of the canonical specification. */
  fingerprint() {
    return sha256(canonical(this.spec));
  }
}
