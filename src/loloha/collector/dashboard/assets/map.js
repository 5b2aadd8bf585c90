// The heat map: values downwards, rounds to the right.

import { axis, breadth, clear, colours, draw, literal, room, roundAxis, scale, ticks } from "./chart.js";
import { count, interval, moment, percent, quantity, shorten } from "./format.js";
import { byId, make, options, say, show, fillTable } from "./page.js";
import { isEmpty, spread, track } from "./series.js";
import { sketch } from "./sketch.js";

const LABEL = 26;
const NEWEST = [24, 100, 300, 1000];
const TOP = [20, 40, 100, 400, 1000];

export function showMap({ campaign, series, choice }) {
  controls(campaign, choice);
  byId("series-json").href = series.address;
  const { data, from } = series;
  const empty = isEmpty(data);
  show("map", !empty);
  if (empty) {
    clear("map-chart");
    return;
  }
  const cells = gather(data, choice.masked);
  const summary = describe(data, campaign);
  say("map-lead", summary);
  const drawing = figure(data, cells, campaign, from, summary);
  draw("map-chart", drawing);
  sketch("map-chart", cells.z, Math.sqrt(cells.most) || 1, drawing.layout.margin, drawing.layout.height);
  legend(cells.most);
  fillTable("map-table", {
    caption: "Estimated frequency of each value in each round",
    head: ["Round", "Begins", "Reports", ...data.label],
    rows: () =>
      data.round.map((round, i) => [
        count(round),
        moment(data.start[i]),
        count(data.n[i]),
        ...data.label.map((_, column) => (data.estimate[i] ? share(data.estimate[i][column]) : "suppressed")),
      ]),
  });
}

function controls(campaign, choice) {
  options(byId("newest"), NEWEST.map((n) => [n, `newest ${count(n)}`]), choice.newest);
  const fitting = TOP.filter((n) => n < campaign.bins);
  const all = campaign.bins <= 1000 ? [[1000, `all ${count(campaign.bins)}`]] : [[1000, "top 1,000"]];
  const choices = [...fitting.filter((n) => n < 1000).map((n) => [n, `top ${count(n)}`]), ...all];
  const chosen = choices.some(([n]) => n === choice.top) ? choice.top : choices.at(-1)[0];
  options(byId("top"), choices, chosen);
  byId("masked").checked = choice.masked;
}

function describe(series, campaign) {
  const shown = series.value.length;
  const values = shown < campaign.bins ? `the ${count(shown)} most frequent of ${count(campaign.bins)} values` : quantity(shown, "value");
  const rounds = series.round.length;
  const span = rounds > 1 ? `rounds ${count(series.round[0])} to ${count(series.round[rounds - 1])}` : `round ${count(series.round[0])}`;
  return `${values[0].toUpperCase()}${values.slice(1)} over ${span}. Select a cell to follow its value, and to see its round, below.`;
}

const share = (f) => (f === null ? "suppressed" : percent(f));

function gather(series, masked) {
  const { rounds, at } = spread(series);
  const rows = series.value.map((_, column) => track(series, at, column));
  let most = 0;
  // Colour grows with the square root, so that rare values show beside frequent ones.
  const z = rows.map(({ frequency, lower }) =>
    frequency.map((f, i) => {
      if (f === null) return null;
      most = Math.max(most, f);
      return masked && lower[i] <= 0 ? null : Math.sqrt(Math.max(0, f));
    }),
  );
  return { rounds, at, rows, z, most };
}

function figure(series, { rounds, at, rows, z, most }, campaign, from, summary) {
  const height = Math.max(260, Math.min(1600, 60 + series.value.length * (series.value.length > 40 ? 7 : 15)));
  const width = breadth("map-chart");
  const short = series.label.map((label) => shorten(label, width < 500 ? 12 : LABEL));
  const labels = short.map(literal);
  const places = ticks(labels.length, (height - 60) / 13);
  const begins = at.map((i) => (i === null ? "" : moment(series.start[i])));
  const hover = rows.map(({ frequency, lower, upper }, row) =>
    frequency.map((f, i) =>
      f === null
        ? `${literal(series.label[row])}<br>round ${rounds[i]}: ${at[i] === null ? "no reports" : "not shown, too few reports"}`
        : `${literal(series.label[row])}<br>round ${rounds[i]}, ${begins[i]}<br>${percent(f)}, 95 %: ${interval(lower[i], upper[i])}`,
    ),
  );
  const data = [
    {
      type: "heatmap",
      x: rounds,
      y: labels.map((_, row) => row),
      z,
      zmin: 0,
      zmax: Math.sqrt(most) || 1,
      colorscale: scale(),
      showscale: false,
      hoverongaps: true,
      text: hover,
      hoverinfo: "text",
      xgap: rounds.length <= 40 ? 1 : 0,
      ygap: labels.length <= 40 ? 1 : 0,
    },
  ];
  const title = width < 500 ? "round" : `round (number ${count(rounds[0])} began ${from})`;
  const layout = {
    height,
    margin: { l: room(short), r: 8, t: 8, b: 44 },
    xaxis: roundAxis(rounds[0], rounds.at(-1), width - room(short), title),
    yaxis: axis({
      autorange: "reversed",
      tickvals: places,
      ticktext: places.map((row) => labels[row]),
      showgrid: false,
      zeroline: false,
      ticks: "",
    }),
  };
  return { data, layout, summary: `Heat map. ${summary}` };
}

function legend(most) {
  const steps = [0, 0.25, 0.5, 0.75, 1];
  const bar = make("span", { class: "bar" });
  bar.style.background = `linear-gradient(to right, ${colours().scale.join(", ")})`;
  byId("map-legend").replaceChildren(
    bar,
    make("span", { class: "marks" }, ...steps.map((step) => make("span", {}, percent(step * step * most, most < 0.1 ? 2 : 1)))),
    make("span", { class: "hint" }, "estimated frequency; estimates below 0 are drawn as 0"),
  );
}
