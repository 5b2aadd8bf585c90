// Mean and quantiles of numbers over rounds, with the bands of their 95 % intervals.

import { axis, breadth, clear, colours, DASHES, draw, LEGEND, roundAxis, SYMBOLS, titled } from "./chart.js";
import { count, plain } from "./format.js";
import { band } from "./lines.js";
import { fillTable, say, show } from "./page.js";
import { spread } from "./series.js";

export function showNumbers({ campaign, data }) {
  const known = data.numbers?.mean?.some((one) => one !== null);
  show("numbers", Boolean(known));
  if (!known) {
    clear("numbers-chart");
    return;
  }
  const names = Object.keys(data.numbers).filter((name) => /^mean$|^quantile_[0-9]+$/.test(name));
  const every = campaign.schedule.every ?? 1;
  const quantiles = names.length > 1 ? ", the median, and the values that 10 % and 90 % of users do not exceed" : "";
  const panels = every > 1 ? ` Each device reports in one round of ${count(every)}.` : "";
  say("numbers-lead", `The mean of all users${quantiles}. Each band holds the true one of its round in 95 of 100 cases. Rounds share noise, because answers are memoised: errors do not average out over them.${panels}`);
  draw("numbers-chart", figure(data, names));
  fillTable("numbers-table", {
    caption: "Mean and quantiles, with 95 % intervals",
    head: ["Round", ...names.flatMap((name) => [title(name), "from", "to"])],
    rows: () => data.round.map((round, i) => [count(round), ...names.flatMap((name) => cells(data.numbers, name, i))]),
  });
}

const title = (name) => {
  const percent = name.split("_")[1];
  return percent === undefined ? "mean" : percent === "50" ? "median" : `${percent} % quantile`;
};

function cells(numbers, name, i) {
  if (numbers[name][i] === null) return ["suppressed", "", ""];
  return ["", "_lower", "_upper"].map((end) => plain(numbers[`${name}${end}`][i]));
}

function figure(data, names) {
  const { rounds, at } = spread(data);
  const width = breadth("numbers-chart");
  const palette = colours().lines;
  const of = (name) => at.map((i) => (i === null ? null : data.numbers[name][i]));
  const bands = names.map((name, line) => band(rounds, of(`${name}_lower`), of(`${name}_upper`), palette[line], 1));
  const lines = names.map((name, line) => ({
    type: "scatter",
    mode: rounds.length <= 60 ? "lines+markers" : "lines",
    name: title(name),
    x: rounds,
    y: of(name),
    line: { color: palette[line], width: 2, dash: DASHES[line] },
    marker: { symbol: SYMBOLS[line], size: 6 },
    text: at.map((i) => (i === null || data.numbers[name][i] === null ? "" : hover(data.numbers, name, i))),
    hovertemplate: "%{text}<extra></extra>",
  }));
  const layout = {
    height: width < 500 ? 300 : 360,
    margin: { l: 60, r: 12, t: 34, b: 44 },
    hovermode: "x unified",
    hoverdistance: 400,
    legend: { ...LEGEND },
    xaxis: roundAxis(rounds[0], rounds.at(-1), width - 60, "round"),
    yaxis: axis({ title: titled("value") }),
  };
  return { data: [...bands, ...lines], layout, summary: `Lines of ${names.map(title).join(", ")} over rounds ${rounds[0]} to ${rounds.at(-1)}, with 95 % bands.` };
}

function hover(numbers, name, i) {
  const [value, lower, upper] = cells(numbers, name, i);
  return `${title(name)}: ${value}, 95 %: ${lower} to ${upper}`;
}
