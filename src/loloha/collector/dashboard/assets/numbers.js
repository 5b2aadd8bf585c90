// Mean and quantiles of numbers over rounds, with the bands of their 95 % intervals.

import { get } from "./api.js";
import { axis, breadth, clear, colours, draw, SYMBOLS, titled } from "./chart.js";
import { count, plain } from "./format.js";
import { band, dots, picture, rings, trace } from "./lines.js";
import { byId, fillTable, say, show } from "./page.js";
import { spread } from "./series.js";

const TOGETHER =
  " Points are single rounds. Lines estimate each round from all rounds shown, allowing for the noise that rounds share; bands contain the truth in about 95 of 100 cases. A change that lasts one round is smoothed like noise. To publish raw numbers, estimate rounds by themselves.";
const ALONE =
  " Each band contains the truth of its round in 95 of 100 cases. Rounds share the noise of permanent responses: errors do not average out over them.";

// Mean and quantiles of single rounds, and of all rounds together beside them.
export async function fetchNumbers(path, data, newest) {
  if (!data.numbers.mean?.some((one) => one !== null)) return { data };
  try {
    return { data, together: await get(`${path}/smoothed`, { newest, top: 1 }) };
  } catch (error) {
    return { data, problem: error.message };
  }
}

export function showNumbers({ campaign, data, together, alarms, smoothed, problem }) {
  const known = data.numbers?.mean?.some((one) => one !== null);
  show("numbers", Boolean(known));
  if (!known) {
    clear("numbers-chart");
    return;
  }
  byId("numbers-smoothed").checked = smoothed;
  const names = Object.keys(data.numbers).filter((name) => /^mean$|^quantile_[0-9]+$/.test(name));
  const every = campaign.schedule.every ?? 1;
  const quantiles = names.length > 1 ? ", the median, and the values that 10 % and 90 % of users do not exceed" : "";
  const panels = every > 1 ? ` Each device reports in one round of ${count(every)}.` : "";
  const failed = problem ? ` They could not be estimated together: ${problem}` : "";
  say("numbers-lead", `The mean of all users${quantiles}.${together ? TOGETHER : ALONE}${panels}${failed}`);
  draw("numbers-chart", figure(data, names, together, alarms));
  const shown = together ?? data;
  const alone = new Map(data.round.map((round, i) => [round, i]));
  const itself = (name, round) => (together ? [plain(data.numbers[name][alone.get(round)] ?? null)] : []);
  fillTable("numbers-table", {
    caption: "Mean and quantiles, with 95 % intervals",
    head: ["Round", ...names.flatMap((name) => [title(name), "from", "to", ...(together ? ["single round"] : [])])],
    rows: () => shown.round.map((round, i) => [count(round), ...names.flatMap((name) => [...cells(shown.numbers, name, i), ...itself(name, round)])]),
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

function figure(data, names, together, alarms) {
  const { rounds, at } = spread(data);
  const width = breadth("numbers-chart");
  const palette = colours().lines;
  const single = (name) => at.map((i) => (i === null ? null : data.numbers[name][i]));
  const shown = together ?? data;
  const place = new Map(shown.round.map((round, i) => [round, i]));
  const row = rounds.map((round) => place.get(round) ?? null);
  const of = (name) => row.map((i) => (i === null ? null : shown.numbers[name][i]));
  const bands = names.map((name, line) => band(rounds, of(`${name}_lower`), of(`${name}_upper`), palette[line], 1));
  const points = together ? names.map((name, line) => dots(rounds, single(name), palette[line], SYMBOLS[line])) : [];
  points.push(...rings(rounds, single("mean"), null, alarms));
  const itself = (name, i) => (together ? `; single round ${plain(single(name)[i])}` : "");
  const text = (name) => row.map((i, x) => (i === null || shown.numbers[name][i] === null ? "" : hover(shown.numbers, name, i) + itself(name, x)));
  const lines = names.map((name, line) => trace(rounds, of(name), line, title(name), text(name), together));
  return picture([...bands, ...lines, ...points], rounds, names.map(title), axis({ title: titled("value") }), width, width < 500 ? 300 : 360);
}

function hover(numbers, name, i) {
  const [value, lower, upper] = cells(numbers, name, i);
  return `${title(name)}: ${value}, 95 %: ${lower} to ${upper}`;
}
