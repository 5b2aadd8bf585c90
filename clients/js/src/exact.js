/**
 * The thresholds that a device draws with, out of 2^53, in exact integer arithmetic.
 *
 * Rational numbers are pairs [numerator, denominator] of BigInt, denominator > 0. Each threshold is
 * the floor of an irrational number, which e^eps to some 100 digits decides.
 */

export const SCALE = 2 ** 53;

const DIGITS = 53n;
const S = 1n << DIGITS;
const FRACTION = 420n;
const HALVINGS = 11n;

/** A finite double, exactly. */
export function rational(x) {
  let shift = 0n;
  while (!Number.isInteger(x)) {
    x *= 2;
    shift += 1n;
  }
  return [BigInt(x), 1n << shift];
}

/** e^eps for a double 0 < eps <= 700, to a relative error below 2^-400. */
export function exp(eps) {
  const [numerator, denominator] = rational(eps);
  const one = 1n << FRACTION;
  const x = (numerator << FRACTION) / (denominator << HALVINGS);
  let sum = one;
  let term = one;
  for (let n = 1n; term; n += 1n) {
    term = ((term * x) >> FRACTION) / n;
    sum += term;
  }
  for (let i = 0n; i < HALVINGS; i += 1n) sum = (sum * sum) >> FRACTION;
  return [sum, one];
}

/** Largest T < 2^53 with T (g-1) / (2^53 - T) <= e^eps: what randomised response keeps. */
export function largestKeep(eps, g) {
  const [a, one] = exp(eps);
  return Number((S * a) / (a + BigInt(g - 1) * one));
}

/**
 * What the second round over g symbols keeps: p_2 as the nearest double, rounded down to 2^-53, and
 * lowered where the chain would otherwise pass e^eps_1.
 *
 * @param {bigint} contrast S (g-1) (p_1 - q_1), see `keepContrast` and `tableContrast`
 */
export function secondKeep(contrast, epsInf, eps1, g, calibration) {
  const [a, one] = exp(epsInf);
  const [b] = exp(eps1);
  const n = BigInt(g);
  const others = n - 1n;
  const keep =
    calibration === "published" ? a * b - one * one : b * (a + (n - 2n) * one) - others * one * one;
  const asked = floorOfNearestDouble(keep, keep + others * (a - b) * one);
  // p_s - q_s = (e^eps_1 - 1) / (e^eps_1 + g - 1), divided by p_1 - q_1.
  const whole = (b + others * one) * contrast;
  const tightest = (S * (whole + others * (b - one) * S * others)) / (n * whole);
  return Number([S, asked, tightest].reduce((least, one) => (one < least ? one : least)));
}

/** Of randomised response that keeps. */
export const keepContrast = (g, [keep]) => BigInt(g) * BigInt(keep) - S;

/** Of a table that is the identity. */
export const tableContrast = (g, [identity]) => BigInt(g - 1) * BigInt(identity);

/**
 * Thresholds of one table for all symbols: of the identity, and else of one symbol for all.
 *
 * @param {number} keep what randomised response of one symbol keeps
 * @param {number} [m0] probability of one symbol for all; by default two symbols are answered alike
 *   as often as if they were independent
 */
export function table(keep, g, m0) {
  const n = BigInt(g);
  const identity = (n * BigInt(keep) - S) / (n - 1n);
  if (m0 === undefined) return [identity, (S + identity) / n].map(Number);
  const [part, whole] = rational(m0);
  return [identity, (part * S * S) / (whole * (S - identity))].map(Number);
}

/** 2^53 times the double nearest to n / d, 0 < n <= d, rounded down. */
function floorOfNearestDouble(n, d) {
  let shift = DIGITS;
  while ((n << shift) / d < S / 2n) shift += 1n;
  const mantissa = ((n << (shift + 1n)) / d + 1n) >> 1n;
  return (mantissa << DIGITS) >> shift;
}

/**
 * The least threshold q_2 such that two differing bits realise at most eps_1 after both rounds.
 *
 * @param {number[]} first thresholds of the first round, for a set and for an unset bit
 * @param {boolean} symmetric p_2 is 1 - q_2, else 1/2
 * @returns {number[]} thresholds of the second round
 */
export function secondBits(first, eps1, symmetric) {
  const [b, one] = exp(eps1);
  const [set, unset] = first.map(BigInt);
  const answered = (q) => (symmetric ? S - q : S / 2n);
  const holds = (q) => {
    const slope = answered(q) - q;
    const p_star = q * S + set * slope;
    const q_star = q * S + unset * slope;
    return p_star * (S * S - q_star) * one <= b * (S * S - p_star) * q_star;
  };
  let low = 0n;
  let high = S / 2n;
  while (low < high) {
    const middle = (low + high) >> 1n;
    if (holds(middle)) high = middle;
    else low = middle + 1n;
  }
  return [Number(answered(low)), Number(low)];
}

/** Whether a second round with p_2 = 1/2 can spend as much as eps_1 after `oue(eps_inf)`. */
export function isReachedAfterHalved(epsInf, eps1) {
  const [a, one] = exp(epsInf);
  return 3n * exp(eps1)[0] < 2n * a + one;
}

/** The same after `sue(eps_inf)`. */
export function isReachedAfterSymmetric(epsInf, eps1) {
  const [root, one] = exp(epsInf / 2);
  return exp(eps1)[0] * (root + 2n * one) < root * (2n * root + one);
}
