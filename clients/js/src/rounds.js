/** Which rounds were answered: a few intervals, however many rounds there were. */

import { isInteger } from "./check.js";
import { byNumber } from "./number.js";

const MOST_INTERVALS = 64;

/**
 * The rounds of both. Beyond a bound the shortest gap is closed: a clock that was years ahead
 * leaves a gap of years, which stays open once the clock is mended.
 */
export function including(rounds, more) {
  const merged = [];
  for (const [first, last] of [...rounds, ...more].sort(byNumber)) {
    const before = merged.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else merged.push([first, last]);
  }
  while (merged.length > MOST_INTERVALS) {
    const gaps = merged.slice(1).map(([first], i) => first - merged[i][1]);
    const place = gaps.indexOf(Math.min(...gaps));
    const [[, last]] = merged.splice(place + 1, 1);
    merged[place][1] = last;
  }
  return merged;
}

/** Whether these are rounds that `including` can have made. */
export const areRounds = (rounds) =>
  rounds.length <= MOST_INTERVALS &&
  rounds.every(
    ([first, last, ...more], i) =>
      isInteger(last) && isInteger(first, last, i && rounds[i - 1][1] + 2) && !more.length,
  );
