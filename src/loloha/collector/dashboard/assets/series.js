// Series over rounds: rounds without reports become gaps, and values are found by their index.

// Above it gaps would cost more than they tell.
const WIDEST = 2000;
const FEW_LINES = 5;

// Every round from the first to the last, or those that there are where these lie too far apart.
export function spread(series) {
  const { round: rounds } = series;
  if (!rounds.length) return { rounds: [], at: [] };
  const [first, last] = [rounds[0], rounds[rounds.length - 1]];
  if (last - first >= WIDEST) return { rounds, at: rounds.map((_, i) => i) };
  const place = new Map(rounds.map((round, i) => [round, i]));
  const all = Array.from({ length: last - first + 1 }, (_, i) => first + i);
  return { rounds: all, at: all.map((round) => place.get(round) ?? null) };
}

// Of one value: frequency and ends of its interval in each of the rounds, null where there is none.
export function track(series, at, column) {
  const of = (rows, i) => (i === null || rows[i] === null ? null : rows[i][column]);
  return {
    frequency: at.map((i) => of(series.estimate, i)),
    lower: at.map((i) => of(series.lower, i)),
    upper: at.map((i) => of(series.upper, i)),
  };
}

// The columns of a series, the most frequent on average first.
function byFrequency(series) {
  const sums = series.value.map(() => 0);
  for (const row of series.estimate) {
    row?.forEach((frequency, column) => {
      sums[column] += frequency ?? 0;
    });
  }
  return series.value.map((_, column) => column).sort((a, b) => sums[b] - sums[a] || a - b);
}

// The most frequent values, and those that alarmed last.
export function usualValues(series, { alarms }) {
  const frequent = byFrequency(series).slice(0, FEW_LINES).map((column) => series.value[column]);
  const shown = alarms.filter((event) => event.round >= series.round[0]);
  const alarmed = shown.reverse().flatMap((event) => event.alarms.map((one) => one.value));
  return [...new Set([...frequent, ...alarmed.filter((value) => value !== null)])];
}

// The means of the last rounds in place of the rounds, where devices report in one of so many.
export function windowed(series) {
  const { window_estimate: estimate, window_lower: lower, window_upper: upper } = series;
  return estimate ? { ...series, estimate, lower, upper } : series;
}

export function isEmpty(series) {
  return series.estimate.every((row) => row === null);
}
