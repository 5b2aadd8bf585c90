/** Which rounds were answered: a few intervals, however many rounds there were. */

import { isInteger } from "./check.js";

const MOST_INTERVALS = 64;

/** Whether a round is among `rounds`: disjoint [first, last], ascending, none touching the next. */
export const holds = (rounds, round) => rounds.some(([first, last]) => first <= round && round <= last);

/**
 * The rounds of both. Beyond a bound the shortest gap is closed: a clock that was years ahead
 * leaves a gap of years, which stays open once the clock is mended.
 */
export function including(rounds, more) {
  const merged = [];
  for (const [first, last] of [...rounds, ...more].sort(([a], [b]) => a - b)) {
    const before = merged.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else merged.push([first, last]);
  }
  while (merged.length > MOST_INTERVALS) {
    let place = 1;
    const gap = (i) => merged[i][0] - merged[i - 1][1];
    for (let i = 2; i < merged.length; i++) if (gap(i) < gap(place)) place = i;
    const [[, last]] = merged.splice(place, 1);
    merged[place - 1][1] = last;
  }
  return merged;
}

/** Whether these are rounds that `including` can have made. */
export const areRounds = (rounds) =>
  rounds.length <= MOST_INTERVALS &&
  rounds.every(
    ([first, last], i) =>
      Number.isSafeInteger(last) && isInteger(first, i && rounds[i - 1][1] + 2, last),
  );
