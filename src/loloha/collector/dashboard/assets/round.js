// One round: every estimate with its interval and, on demand, projected to the simplex.

import { axis, breadth, clear, colours, draw, LEGEND, literal, room, ticks, titled, translucent } from "./chart.js";
import { withQuery } from "./api.js";
import { count, interval, moment, percent, quantity, shorten } from "./format.js";
import { byId, options, say, show, fillTable } from "./page.js";
import { reading } from "./overview.js";

export const MOST_SHOWN = 1000;
const COUNTS = [20, 60, 200];
// More values than this are exported only in part.
const MOST_EXPORTED = 2 ** 21;
const LONG = 6;

export function showRound({ campaign, rounds, estimates, choice, path }) {
  const reported = rounds.filter((one) => one.round >= 0 && one.n > 0);
  show("round", reported.length > 0);
  if (!reported.length || !estimates) return;
  controls(campaign, reported, estimates, choice);
  exports(path, campaign, estimates, choice);
  say("round-lead", describe(estimates, campaign));
  byId("round").classList.toggle("suppressed", Boolean(estimates.suppressed_because));
  if (estimates.suppressed_because) {
    clear("round-chart");
    return;
  }
  const shown = pick(estimates, choice);
  // Without a bar an axis would say nothing.
  document.querySelector("[data-picture=round-chart]").hidden = hasNoBar(estimates);
  if (hasNoBar(estimates)) clear("round-chart");
  else draw("round-chart", figure(estimates, shown, choice));
  const extra = choice.projected ? ["Projected"] : [];
  fillTable("round-table", {
    caption: `Estimates of round ${count(estimates.round)}`,
    head: ["Value", "Estimate", "95 % from", "to", ...extra],
    rows: () =>
      shown.map((v) => [
        estimates.label[v],
        estimates.estimate[v] === null ? "suppressed" : percent(estimates.estimate[v]),
        percent(estimates.lower[v]),
        percent(estimates.upper[v]),
        ...extra.map(() => percent(estimates.projected?.[v])),
      ]),
  });
}

function controls(campaign, reported, estimates, choice) {
  const choices = reported.map((one) => [one.round, one.shown ? count(one.round) : `${count(one.round)} (suppressed)`]);
  options(byId("which"), choices.reverse(), estimates.round);
  const numbers = reported.map((one) => one.round);
  const at = numbers.indexOf(estimates.round);
  byId("earlier").disabled = at <= 0;
  byId("later").disabled = at === numbers.length - 1;
  const whole = campaign.bins <= MOST_SHOWN;
  const sizes = COUNTS.filter((n) => n < campaign.bins).map((n) => [n, `top ${count(n)}`]);
  sizes.push([MOST_SHOWN, whole ? `all ${count(campaign.bins)}` : `top ${count(MOST_SHOWN)}`]);
  options(byId("count"), sizes, sizes.some(([n]) => n === choice.count) ? choice.count : sizes.at(-1)[0]);
  byId("order").value = choice.order;
  byId("projected").checked = choice.projected;
  show("projected-note", choice.projected && !estimates.suppressed_because);
}

function exports(path, campaign, estimates, choice) {
  const address = `${path}/rounds/${estimates.round}/estimates`;
  const projected = choice.projected ? true : null;
  const top = campaign.bins > MOST_EXPORTED ? 100_000 : null;
  for (const [id, format] of [["csv", "csv"], ["parquet", "parquet"], ["json", "json"]]) {
    const link = byId(id);
    // A suppressed round has nothing to export.
    link.hidden = Boolean(estimates.suppressed_because);
    link.href = withQuery(address, { format, projected, top });
    link.download = `round-${estimates.round}.${format}`;
  }
}

const hasNoBar = ({ estimate }) => estimate.every((one) => one === null);

function describe(estimates, campaign) {
  const when = `Round ${count(estimates.round)}, from ${moment(estimates.start)}, ${estimates.state}`;
  if (estimates.suppressed_because === "not_published") {
    return `${when}: ${quantity(estimates.n, "report")}, not published yet: estimates are updated in batches of reports and when the round is closed, so that no update shows a single report.`;
  }
  if (estimates.suppressed_because) {
    return `${when}: ${quantity(estimates.n, "report")}, fewer than the minimum cohort of ${count(campaign.terms.minimum_cohort)}, so its estimates ${estimates.state === "closed" ? "stay" : "are"} suppressed.`;
  }
  const found = reading(estimates);
  const clearly = found ? ` ${count(found.clear)} of ${quantity(found.total, "value")} are significantly above 0 (95 %, all values at once).` : "";
  const [kind, reached] = estimates.numbers ? ["threshold", "drawn"] : ["value", "sampled"];
  const few = estimates.suppressed ? ` Bars are suppressed of ${quantity(estimates.suppressed, kind)}, each ${reached} by fewer than ${count(campaign.terms.minimum_cohort)} users.` : "";
  const whole = estimates.numbers ? " Mean and quantiles above are of all reports together." : "";
  if (hasNoBar(estimates)) return `${when}: ${quantity(estimates.n, "report")}.${few}${whole}`;
  if (estimates.numbers) {
    return `${when}: ${quantity(estimates.n, "report")}. Each bar is the share of users with a value among those named, from the first to the last, by those who drew that threshold alone: unbiased, so it may leave 0 to 100 %. Whiskers are 95 % intervals.${few}`;
  }
  return `${when}: ${quantity(estimates.n, "report")}. Whiskers are 95 % intervals of one value each; estimates are unbiased, so those of rare values may fall below 0, outside their intervals.${clearly}${few}`;
}

// Places of values in the answer, which ascend with the values, in the order in which they are drawn.
function pick(estimates, { count: most, order }) {
  const frequency = (v) => estimates.estimate[v] ?? Number.NEGATIVE_INFINITY;
  const ranked = estimates.estimate.map((_, v) => v).sort((a, b) => frequency(b) - frequency(a) || a - b);
  const best = ranked.slice(0, most);
  return order === "frequency" ? best : best.sort((a, b) => a - b);
}

function figure(estimates, shown, { projected }) {
  const { accent, ink, warn } = colours();
  const width = breadth("round-chart");
  const lying = shown.length <= 60 && shown.some((v) => estimates.label[v].length > LONG);
  const place = shown.map((_, i) => i);
  const share = shown.map((v) => (estimates.estimate[v] === null ? null : 100 * estimates.estimate[v]));
  // A whisker begins at the estimate, which can lie outside of its interval.
  const beyond = (end, sign) => shown.map((v) => (estimates.estimate[v] === null ? 0 : 100 * Math.max(0, sign * (end[v] - estimates.estimate[v]))));
  const whiskers = { type: "data", symmetric: false, array: beyond(estimates.upper, 1), arrayminus: beyond(estimates.lower, -1), color: ink, thickness: shown.length > 80 ? 0.6 : 1.2, width: shown.length > 40 ? 0 : 3 };
  const data = [
    {
      type: "bar",
      orientation: lying ? "h" : "v",
      [lying ? "y" : "x"]: place,
      [lying ? "x" : "y"]: share,
      [lying ? "error_x" : "error_y"]: whiskers,
      name: "estimate",
      marker: { color: translucent(accent, 0.75), line: { width: 0 } },
      hovertext: shown.map((v) => `${literal(estimates.label[v])}<br>${percent(estimates.estimate[v])}, 95 %: ${interval(estimates.lower[v], estimates.upper[v])}`),
      hoverinfo: "text",
    },
  ];
  if (projected && estimates.projected) {
    data.push({
      type: "scatter",
      mode: "markers",
      [lying ? "y" : "x"]: place,
      [lying ? "x" : "y"]: shown.map((v) => (estimates.projected[v] === null ? null : 100 * estimates.projected[v])),
      name: "projected to the simplex",
      marker: { color: warn, symbol: "diamond", size: shown.length > 80 ? 5 : 8, line: { width: 0 } },
      hovertext: shown.map((v) => `${literal(estimates.label[v])}<br>projected: ${percent(estimates.projected[v])}`),
      hoverinfo: "text",
    });
  }
  return { data, layout: layoutOf(estimates, shown, lying, width, data.length > 1), summary: summarise(estimates, shown) };
}

function layoutOf(estimates, shown, lying, width, keyed) {
  const short = shown.map((v) => shorten(estimates.label[v], width < 500 ? 14 : 30));
  const labels = short.map(literal);
  const height = lying ? Math.max(180, 60 + 22 * shown.length) : 380;
  const places = ticks(labels.length, lying ? labels.length : (width - 60) / room(short));
  const named = axis({
    tickvals: places,
    ticktext: places.map((i) => labels[i]),
    tickangle: 0,
    showgrid: false,
    zeroline: false,
    range: lying ? [labels.length - 0.4, -0.6] : [-0.7, labels.length - 0.3],
    title: titled(lying ? "" : "value"),
  });
  const measured = axis({ title: titled(lying ? "" : "frequency, %"), zeroline: true, zerolinewidth: 1.5, ticksuffix: " %" });
  return {
    height,
    margin: { l: lying ? room(short) : 56, r: 12, t: keyed ? 30 : 12, b: lying ? 28 : 44 },
    bargap: 0.25,
    showlegend: keyed,
    legend: { ...LEGEND },
    xaxis: lying ? measured : named,
    yaxis: lying ? named : measured,
  };
}

function summarise(estimates, shown) {
  const best = [...shown].sort((a, b) => estimates.estimate[b] - estimates.estimate[a]).slice(0, 3);
  const told = best.map((v) => `${estimates.label[v]} ${percent(estimates.estimate[v])}`).join(", ");
  return `Histogram of round ${estimates.round} with intervals. Most frequent: ${told}.`;
}
