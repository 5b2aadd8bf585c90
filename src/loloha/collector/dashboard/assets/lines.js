// Lines over rounds, each with the band of its 95 % intervals.

import { axis, breadth, clear, colours, DASHES, draw, LEGEND, literal, roundAxis, SYMBOLS, titled, translucent } from "./chart.js";
import { count, interval, percent, shorten } from "./format.js";
import { byId, make, say, show, fillTable } from "./page.js";
import { isEmpty, spread, track, windowed } from "./series.js";

export const MOST_LINES = 8;

const TOGETHER =
  "Points are single rounds, unbiased. Lines estimate each round from all rounds shown, allowing for the noise that rounds share; bands contain the true frequency in about 95 of 100 cases. A change that lasts one round is smoothed like noise: its point shows it, and an alarm. To publish raw numbers, estimate rounds by themselves.";

export function showLines({ campaign, drawn, alarms, choice, remove, address }) {
  const empty = isEmpty(drawn.data);
  show("lines", !empty);
  if (empty) {
    clear("lines-chart");
    return;
  }
  const every = campaign.schedule.every ?? 1;
  const { together } = drawn;
  const means = every > 1 && choice.windowed && !together;
  show("windows", every > 1 && !together);
  byId("smoothed").checked = choice.smoothed;
  byId("smoothed-csv").href = address;
  byId("windowed").checked = choice.windowed;
  say("windows-text", `Mean of the last ${count(every)} rounds`);
  const data = means ? windowed(drawn.data) : drawn.data;
  const chosen = drawn.columns;
  const chips = chosen.map((column, line) => chip(data, column, line, chosen.length > 1 ? remove : null));
  byId("chosen").replaceChildren(...chips);
  const summary = choice.values
    ? "The values you chose. Each band contains the true frequency of its round in 95 of 100 cases."
    : "The most frequent values of the rounds above, and those that alarmed last. A band contains the true frequency of a value chosen beforehand in 95 of 100 cases; of values that are at the top by noise, less often.";
  const shared = " Rounds share the noise of permanent responses: errors do not average out over them.";
  const single = campaign.protocol.eps_inf === undefined ? "" : shared;
  const panels = ` Each device reports in one round of ${count(every)}: `;
  const text = means
    ? "a point is the mean of that many rounds, in which each counts once, and a band is for their mean frequency."
    : "a point estimates from a sample of them, and bands allow for it.";
  const failed = drawn.problem ? ` They could not be estimated together: ${drawn.problem}` : "";
  say("lines-lead", together ? TOGETHER : summary + (every > 1 ? panels + text : single) + failed);
  draw("lines-chart", figure(data, chosen, alarms, together));
  fillTable("lines-table", {
    caption: "Estimated frequency of the chosen values, with 95 % intervals",
    head: ["Round", ...chosen.flatMap((column) => [data.label[column], "from", "to", ...(together ? ["single round"] : [])])],
    rows: () => data.round.map((round, i) => [count(round), ...chosen.flatMap((column) => cells(data, i, column, together))]),
  });
}

function cells(data, i, column, together) {
  const f = data.estimate[i]?.[column] ?? null;
  if (f === null) return ["suppressed", "", "", ...(together ? [""] : [])];
  const alone = together ? [percent(data.unbiased[i][column])] : [];
  return [percent(f), percent(data.lower[i][column]), percent(data.upper[i][column]), ...alone];
}

function chip(data, column, line, remove) {
  const label = data.label[column];
  const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
  swatch.style.background = colours().lines[line];
  const button = remove
    ? make("button", { type: "button", "aria-label": `Remove ${label}`, onclick: () => remove(data.value[column]) }, "×")
    : null;
  return make("li", {}, swatch, make("span", {}, shorten(label, 30)), button);
}

function figure(data, chosen, alarms, together) {
  const { rounds, at } = spread(data);
  const width = breadth("lines-chart");
  const palette = colours().lines;
  const bands = [];
  const points = [];
  const lines = chosen.map((column, line) => {
    const { frequency, lower, upper } = track(data, at, column);
    const alone = together ? at.map((i) => (i === null || data.unbiased[i] === null ? null : data.unbiased[i][column])) : frequency;
    if (together) points.push(dots(rounds, scaled(alone), palette[line], SYMBOLS[line]));
    points.push(...rings(rounds, scaled(alone), data.value[column], alarms));
    const label = literal(data.label[column]);
    bands.push(band(rounds, lower, upper, palette[line]));
    const text = frequency.map((f, i) => (f === null ? "" : `${label}: ${percent(f)}, 95 %: ${interval(lower[i], upper[i])}${together ? `; single round ${percent(alone[i])}` : ""}`));
    return trace(rounds, scaled(frequency), line, literal(shorten(data.label[column], 24)), text, together);
  });
  const yaxis = axis({ title: titled("frequency, %"), zeroline: true, zerolinewidth: 1.5, ticksuffix: " %" });
  return picture([...bands, ...lines, ...points], rounds, chosen.map((column) => data.label[column]), yaxis, width, width < 500 ? 340 : 400);
}

// One line over rounds, in the look of its place among them; with points, unless those of single rounds are drawn.
export function trace(rounds, y, line, name, text, together) {
  return {
    type: "scatter",
    mode: rounds.length <= 60 && !together ? "lines+markers" : "lines",
    name,
    x: rounds,
    y,
    line: { color: colours().lines[line], width: 2, dash: DASHES[line] },
    marker: { symbol: SYMBOLS[line], size: 6 },
    text,
    hovertemplate: "%{text}<extra></extra>",
  };
}

export function picture(data, rounds, names, yaxis, width, height) {
  const layout = {
    height,
    margin: { l: 60, r: 12, t: 34, b: 44 },
    hovermode: "x unified",
    // Wherever the pointer is, the nearest round is told.
    hoverdistance: 400,
    legend: { ...LEGEND },
    xaxis: roundAxis(rounds[0], rounds.at(-1), width - 60, "round"),
    yaxis,
  };
  return { data, layout, summary: `Lines of ${names.join(", ")} over rounds ${rounds[0]} to ${rounds.at(-1)}, with 95 % bands.` };
}

const scaled = (frequencies) => frequencies.map((f) => (f === null ? null : 100 * f));

// What single rounds say, beside the line of all of them.
export function dots(rounds, y, colour, symbol) {
  return { type: "scatter", mode: "markers", x: rounds, y, marker: { color: colour, symbol, size: 5, opacity: 0.5 }, hoverinfo: "skip", showlegend: false };
}

// A ring about each point of a value that alarmed, null for the mean of numbers; none where nothing did.
export function rings(rounds, alone, value, alarms) {
  const alarmed = new Set((alarms?.alarms ?? []).filter((event) => event.alarms.some((one) => one.value === value)).map((event) => event.round));
  const at = rounds.map((_, i) => i).filter((i) => alarmed.has(rounds[i]) && alone[i] !== null);
  if (!at.length) return [];
  const marker = { color: colours().warn, symbol: "circle-open", size: 14, line: { width: 2.5 } };
  return [{ type: "scatter", mode: "markers", x: at.map((i) => rounds[i]), y: at.map((i) => alone[i]), marker, hoverinfo: "skip", showlegend: false }];
}

// One closed outline for each run of rounds without a gap.
export function band(rounds, lower, upper, colour, scale = 100) {
  const x = [];
  const y = [];
  const close = (first, last) => {
    for (let i = first; i <= last; i += 1) push(i, upper);
    for (let i = last; i >= first; i -= 1) push(i, lower);
    push(first, upper);
    x.push(null);
    y.push(null);
  };
  const push = (i, end) => {
    x.push(rounds[i]);
    y.push(scale * end[i]);
  };
  let first = null;
  rounds.forEach((_, i) => {
    if (lower[i] === null) {
      if (first !== null) close(first, i - 1);
      first = null;
    } else if (first === null) first = i;
  });
  if (first !== null) close(first, rounds.length - 1);
  return {
    type: "scatter",
    mode: "lines",
    x,
    y,
    fill: "toself",
    fillcolor: translucent(colour, 0.16),
    line: { width: 0.5, color: translucent(colour, 0.4) },
    hoverinfo: "skip",
    showlegend: false,
  };
}
