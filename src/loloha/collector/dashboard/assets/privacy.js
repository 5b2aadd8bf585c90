// The guarantee in plain words, as the API says it, and the curve of the loss.

import { axis, colours, draw, mark, titled } from "./chart.js";
import { count, duration, plain } from "./format.js";
import { list, make, say, show, tiles, fillTable } from "./page.js";

const MEANING = {
  g: "memo symbols, each shared by several values",
  p1: "permanent response: probability of the true symbol",
  q1: "permanent response: probability of one given other symbol",
  p2: "instantaneous response: probability of the permanent one",
  q2: "instantaneous response: probability of one given other symbol",
  p_star: "probability that a report supports the user's value",
  q_star: "probability that a report supports another value",
  eps_first: "realised loss of the first report",
  eps_memo: "realised loss of the permanent response",
};

export function showPrivacy({ privacy, campaign }) {
  const forever = privacy.eps_inf === null;
  const once = privacy.windows[0].eps;
  const ten = privacy.change.find((one) => one.reports === 10);
  show("privacy", true);
  tiles("privacy-tiles", [
    ["eps_1", plain(privacy.eps_1), "loss of the first report, at most"],
    ["eps_inf", plain(privacy.eps_inf), forever ? "nothing is memoised: no bound holds for ever" : "all reports of one value, for ever"],
    ["cap", plain(privacy.cap), forever ? "every report spends again" : "most budget that a user can spend; not a bound on change patterns"],
    ...(privacy.exchanged > privacy.eps_inf
      ? [["One value exchanged", plain(privacy.exchanged), `for another, among several: loss at most; the price of that cap, ${plain(privacy.eps_inf)} if responses were drawn independently`]]
      : []),
    ["Any one round", once === null ? "none" : plain(once), once === null ? "the permanent response is sent as it is: the loss of a changed round is unbounded" : "loss, all other rounds known, for ever"],
    ["A change shows", ten.auc === null ? "–" : share(ten), "AUC of the best test of 10 reports before and 10 after it, key known, values equally likely, over users who draw their keys at random, if there are any keys: 0.5 is chance, 1 certainty"],
    ["Minimum cohort", count(privacy.terms.minimum_cohort), "rounds with fewer reports are not shown"],
    ["Late reports", duration(privacy.terms.late_seconds), "accepted after a round's end"],
    ["Keys", privacy.keys, privacy.keys === "drawn" ? "each device draws its own" : "the collector assigns them"],
  ]);
  draw("privacy-chart", figure(privacy));
  fillTable("privacy-table", {
    caption: "Loss after t reports of one value",
    head: ["Reports t", "eps_t"],
    rows: () => privacy.growth.map((one) => [count(one.reports), plain(one.eps)]),
  });
  fillTable("change-table", {
    caption: "AUC of the best test for a change of value, from T reports before and T after it, with the key known and all values equally likely; over users who draw their keys at random, if there are any keys",
    head: ["Reports T", "A change shows"],
    rows: () => privacy.change.map((one) => [count(one.reports), one.auc === null ? "not computed" : share(one)]),
  });
  list("protected", privacy.protected);
  list("leaks", privacy.leaks);
  const known = Object.entries(privacy.parameters).filter(([, number]) => number !== null);
  fillTable("parameters", {
    caption: `Protocol ${campaign.protocol.type}, as devices compute it: realised losses never exceed the nominal ones`,
    head: ["Parameter", "Value", "Meaning"],
    rows: () => known.map(([name, number]) => [make("code", {}, name), String(number), MEANING[name] ?? ""]),
  });
  say("statement", privacy.text);
}

// What is a bound is rounded up and called one.
function share({ auc, bound }) {
  return bound ? `≤ ${Math.min(1, Math.ceil(1000 * auc - 1e-6) / 1000).toFixed(3)}` : auc.toFixed(3);
}

function figure(privacy) {
  const { accent, warn } = colours();
  const { growth, eps_inf } = privacy;
  const bounded = eps_inf !== null;
  const most = growth.at(-1).reports;
  const data = [
    {
      type: "scatter",
      mode: "lines+markers",
      x: growth.map((one) => one.reports),
      y: growth.map((one) => one.eps),
      line: { color: accent, width: 2.5 },
      marker: { size: 6 },
      hovertemplate: "after %{x} reports: eps_t = %{y:.4g}<extra></extra>",
    },
  ];
  const layout = {
    height: 280,
    margin: { l: 48, r: 12, t: 24, b: 44 },
    showlegend: false,
    xaxis: axis({ type: "log", title: titled("reports t of one value"), tickvals: [1, 2, 3, 5, 10, 20, 50, 100], range: [-0.03, Math.log10(most) + 0.03], zeroline: false }),
    yaxis: axis({ title: titled("eps_t"), rangemode: "tozero" }),
    ...(bounded ? mark(eps_inf, `eps_inf = ${plain(eps_inf)}`, warn) : {}),
  };
  const at = (t) => plain(growth.find((one) => one.reports === t)?.eps ?? null);
  const end = bounded ? `it stays below eps_inf = ${plain(eps_inf)}` : "it grows without end";
  return { data, layout, summary: `Curve of the loss: ${at(1)} after one report, ${at(2)} after two, ${at(10)} after ten; ${end}.` };
}
