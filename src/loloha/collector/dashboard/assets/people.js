// Who took part, and what was not counted and why.

import { axis, breadth, clear, colours, draw, LEGEND, mark, roundAxis, titled } from "./chart.js";
import { count, moment, percent, quantity } from "./format.js";
import { say, show, fillTable } from "./page.js";

const EXTRA = ["duplicates", "conflicts"];

export function showPeople({ campaign, rounds, panels }) {
  show("people", rounds.length > 0);
  if (!rounds.length) return;
  const real = rounds.filter((one) => one.round >= 0);
  const reasons = [...new Set(rounds.flatMap((one) => Object.keys(one.refused)))].filter((name) => name !== "conflict").sort();
  const total = (name) => rounds.reduce((sum, one) => sum + (one[name] ?? one.refused[name] ?? 0), 0);
  const not = [...EXTRA, ...reasons].map((name) => [name, total(name)]).filter(([, n]) => n > 0);
  const n = total("n");
  const all = n + not.reduce((sum, [, one]) => sum + one, 0);
  const told = not.map(([name, one]) => `${count(one)} ${name}`).join(", ");
  say(
    "people-lead",
    `${quantity(n, "report")} counted. ` +
      (told ? `Not counted: ${told} (${percent((all - n) / all)} of all that came).` : "Nothing was refused, and nothing came twice.") +
      " A duplicate is a harmless repeat; a conflict is a second, different report of one reporter in one round." +
      (panels ? ` Sizes of ${panels.text}.` : ""),
  );
  if (real.some((one) => one.n > 0)) draw("people-chart", counted(real, campaign));
  else clear("people-chart");
  if (not.length) draw("refused-chart", turned(rounds, not.map(([name]) => name)));
  else clear("refused-chart");
  fillTable("people-table", {
    caption: "Reports of each round",
    head: ["Round", "Begins", "State", "Counted", "Duplicates", "Conflicts", ...reasons.map((name) => `Refused: ${name}`), "Estimates"],
    rows: () =>
      [...rounds].reverse().map((one) => [
        one.round < 0 ? "before round 0" : count(one.round),
        moment(one.start),
        one.state,
        count(one.n),
        count(one.duplicates),
        count(one.conflicts),
        ...reasons.map((name) => count(one.refused[name] ?? 0)),
        one.shown ? "shown" : "suppressed",
      ]),
  });
}

function counted(rounds, campaign) {
  const { accent, weak, warn } = colours();
  const width = breadth("people-chart");
  const numbers = rounds.map((one) => one.round);
  const least = campaign.terms.minimum_cohort;
  const most = Math.max(...rounds.map((one) => one.n));
  // A line far below all bars would only lie on the axis.
  const near = least > most / 50;
  const bars = (shown, name, marker) => {
    const those = rounds.filter((one) => one.shown === shown);
    return {
      type: "bar",
      name,
      x: those.map((one) => one.round),
      y: those.map((one) => one.n),
      marker,
      hovertext: those.map((one) => `round ${one.round}, ${one.state}<br>${count(one.n)} reports, ${name}`),
      hoverinfo: "text",
    };
  };
  const data = [
    bars(true, "estimates shown", { color: accent }),
    bars(false, "estimates suppressed", { color: weak, pattern: { shape: "/", size: 6 } }),
  ].filter((trace) => trace.x.length);
  const layout = {
    height: 230,
    margin: { l: 64, r: 12, t: near ? 24 : 10, b: 44 },
    bargap: 0.2,
    barmode: "overlay",
    showlegend: false,
    xaxis: roundAxis(numbers[0], numbers.at(-1), width - 60, "round"),
    yaxis: axis({ title: titled("reports counted"), rangemode: "tozero", tickformat: ",d" }),
    ...(near ? mark(least, `minimum cohort ${count(least)}`, warn) : {}),
  };
  const summary = `Bars: reports counted in each of ${quantity(rounds.length, "round")}, at most ${count(most)}. The minimum cohort is ${count(least)}.`;
  return { data, layout, summary };
}

function turned(rounds, names) {
  const width = breadth("refused-chart");
  const palette = colours().lines;
  const patterns = ["", "/", "x", ".", "-", "|", "+", "\\"];
  const real = rounds.filter((one) => one.round >= 0);
  const numbers = real.map((one) => one.round);
  const data = names.map((name, i) => ({
    type: "bar",
    name,
    x: numbers,
    y: real.map((one) => one[name] ?? one.refused[name] ?? 0),
    marker: { color: palette[i % 8], pattern: { shape: patterns[i % 8], fillmode: "overlay", size: 6 } },
    hovertemplate: "round %{x}: %{y} %{fullData.name}<extra></extra>",
  }));
  const layout = {
    height: 230,
    barmode: "stack",
    margin: { l: 64, r: 12, t: 34, b: 44 },
    bargap: 0.2,
    showlegend: true,
    legend: { ...LEGEND },
    xaxis: roundAxis(numbers[0] ?? 0, numbers.at(-1) ?? 0, width - 60, "round"),
    yaxis: axis({ title: titled("not counted"), rangemode: "tozero", tickformat: ",d" }),
  };
  return { data, layout, summary: `Stacked bars: what was not counted in each round, by reason: ${names.join(", ")}.` };
}
