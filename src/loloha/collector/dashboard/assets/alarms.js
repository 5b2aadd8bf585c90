// Alarms: rounds that were not what the rounds before led to expect, and how many of them are expected to be false.

import { count, moment, percent, plain } from "./format.js";
import { fillTable, say, show } from "./page.js";

export function showAlarms({ rules, alarms }) {
  show("alarms", rules.length > 0 || alarms.length > 0);
  const stated = rules.map((rule) => rule.meaning).join("; ");
  const said = stated ? `Each round is tested once, when it has closed: ${stated}.` : "No rule is set any more.";
  say("alarms-lead", alarms.length ? `${said} Rings mark them where their values are drawn above.` : `${said} None so far.`);
  fillTable("alarms-table", {
    caption: "Newest alarms",
    head: ["Round", "Began", "Value", "Estimate of the round alone", "Standard deviations from the prediction"],
    rows: () =>
      [...alarms].reverse().flatMap((event) =>
        event.alarms.map((one) => [count(event.round), moment(event.start), one.label, itself(one), deviations(one)]),
      ),
  });
  show("alarms-table", alarms.length > 0);
}

// Of the mean of numbers a number, of values a share.
export const itself = ({ value, unbiased }, digits) => (value === null ? plain(unbiased) : percent(unbiased, digits));

export const deviations = ({ innovation }) => `${innovation < 0 ? "−" : "+"}${Math.abs(innovation).toFixed(1)}`;
