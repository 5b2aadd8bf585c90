/**
 * The thresholds that a device draws with, out of 2^53, in exact integer arithmetic.
 *
 * Each is the floor of an irrational number, which e^eps to some 100 digits decides: a, b are
 * e^eps_inf, e^eps_1 times ONE.
 */

import { must } from "./errors.js";

export const SCALE = 2 ** 53;
export const SMALLER_EPS_1 = "eps_1 must be below eps_inf, within reach of the second round; lower it";

const S = 2n ** 53n;
const ONE = 2n ** 420n;
const HALVINGS = 11;
const UNIT = 2 ** 409;

/** x times UNIT = ONE / 2^HALVINGS: exact for every double that is not too small to matter. */
const fixed = (x) => BigInt(Math.floor(x * UNIT));

/** e^eps for a double 0 < eps <= 700, times ONE, to a relative error below 2^-400. */
export function exp(eps) {
  const x = fixed(eps);
  let sum = ONE;
  let term = ONE;
  for (let n = 1n; term; n += 1n) {
    term = (term * x) / ONE / n;
    sum += term;
  }
  for (let i = 0; i < HALVINGS; i++) sum = (sum * sum) / ONE;
  return sum;
}

/** Largest T < 2^53 with T (g-1) / (2^53 - T) <= e^eps: what randomised response keeps. */
export function largestKeep(eps, g) {
  const a = exp(eps);
  return Number((S * a) / (a + BigInt(g - 1) * ONE));
}

/** Thresholds of a first round over g symbols: what it keeps, or with a joint memo those of a table. */
export const firstSymbols = ({ memo, m0 }, eps, g) => (memo ? table(eps, g, m0) : [largestKeep(eps, g)]);

/**
 * Threshold of the second round over g symbols: p_2 as the nearest double, rounded down to 2^-53, and
 * lowered where the chain would otherwise pass e^eps_1.
 */
export function secondSymbols({ memo, eps_inf, eps_1, calibration }, [first], g) {
  const a = exp(eps_inf);
  const b = exp(eps_1);
  const n = BigInt(g);
  const others = n - 1n;
  const keep =
    calibration === "published" ? a * b - ONE * ONE : b * (a + (n - 2n) * ONE) - others * ONE * ONE;
  const p2 = Number((keep << 200n) / (keep + others * (a - b) * ONE)) / 2 ** 200;
  // p_s - q_s = (e^eps_1 - 1) / (e^eps_1 + g - 1), divided by p_1 - q_1 = contrast / (S (g-1)).
  const contrast = memo ? others * BigInt(first) : n * BigInt(first) - S;
  const whole = (b + others * ONE) * contrast;
  const tightest = (S * (whole + others * (b - ONE) * S * others)) / (n * whole);
  return [Math.min(SCALE, Math.floor(p2 * SCALE), Number(tightest))];
}

/**
 * Thresholds of one table for all symbols: of the identity, and else of one symbol for all.
 *
 * @param {number} [m0] probability of one symbol for all; by default two symbols are answered alike
 *   as often as if they were independent
 */
export function table(eps, g, m0) {
  const n = BigInt(g);
  const identity = (n * BigInt(largestKeep(eps, g)) - S) / (n - 1n);
  const constant =
    m0 === undefined ? (S + identity) / n : (fixed(m0) * S * S) / (S - identity) / BigInt(UNIT);
  return [identity, constant].map(Number);
}

/**
 * Of a second round over bits: p_2, which is 1 - q_2, or 1/2 where the first round tells `reach`, and
 * the least q_2 such that two differing bits realise at most eps_1.
 */
export const secondBits = (reach) => ({ eps_inf, eps_1 }, first) => {
  const b = exp(eps_1);
  // With p_2 = 1/2 and q_2 = 0 they realise x (2 y + 1) / (x + 2).
  const [x, y] = reach ? reach(eps_inf) : [b, b];
  must(b * (x + 2n * ONE) < x * (2n * y + ONE), SMALLER_EPS_1);
  const answered = (q) => (reach ? S / 2n : S - q);
  const holds = (q) => {
    const [p_star, q_star] = first.map((bit) => q * S + BigInt(bit) * (answered(q) - q));
    return p_star * (S * S - q_star) * ONE <= b * (S * S - p_star) * q_star;
  };
  let low = 0n;
  let high = S / 2n;
  while (low < high) {
    const middle = (low + high) / 2n;
    if (holds(middle)) high = middle;
    else low = middle + 1n;
  }
  return [answered(low), low].map(Number);
};

/** After `oue(eps_inf)`. */
export const reachOfHalf = (epsInf) => [ONE, exp(epsInf)];

/** After `sue(eps_inf)`. */
export const reachOfSymmetric = (epsInf) => [exp(epsInf / 2), exp(epsInf / 2)];
