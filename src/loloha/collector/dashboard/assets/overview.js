// The list of campaigns, the figures at the top, and what a reader must know before believing them.

import { deviations, itself } from "./alarms.js";
import { count, duration, interval, moment, percent, plain, quantity } from "./format.js";
import { byId, make, say, tiles } from "./page.js";

export function listCampaigns(campaigns, chosen, choose) {
  byId("campaigns").replaceChildren(
    ...[...campaigns].reverse().map((one) => {
      const link = make(
        "a",
        { href: `#campaign=${one.fingerprint}`, "aria-current": one.fingerprint === chosen ? "page" : null },
        make("strong", {}, one.name),
        make("span", {}, `${one.protocol.type} · ${quantity(one.protocol.k, "value")}`),
      );
      link.addEventListener("click", (event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        choose(one.fingerprint);
      });
      return make("li", {}, link);
    }),
  );
  const place = byId("campaigns");
  const current = place.querySelector("[aria-current]");
  // On a phone the list scrolls.
  if (current) place.scrollTop = current.offsetTop - place.offsetTop;
}

// Of the collector, under whatever path a proxy shows it.
const here = () => new URL(".", window.location.href).href.replace(/\/$/, "");

export function welcome() {
  const address = here();
  say(
    "welcome-command",
    `export LOLOHA_ADMIN_KEY=...\nloloha campaign create "Theme of the editor" --to ${address} \\\n` +
      `  --protocol ololoha --eps-inf 2 --eps-1 1 --domain "light,dark,system"`,
  );
}

export function describe(campaign) {
  say("name", campaign.name);
  const { type, eps_inf, eps_1, eps } = campaign.protocol;
  const loss = eps === undefined ? [`eps_inf ${plain(eps_inf)}`] : [`eps ${plain(eps)} in every report`];
  if (eps_1 !== undefined) loss.push(`eps_1 ${plain(eps_1)}`);
  byId("facts").replaceChildren(
    ...[
      type,
      ...loss,
      quantity(campaign.protocol.k, "value"),
      `a round lasts ${duration(campaign.schedule.seconds)}`,
      ...(campaign.schedule.every ? [`a device reports in one round of ${count(campaign.schedule.every)}`] : []),
      `round 0 began ${moment(campaign.schedule.start)}`.replace("began", campaign.now.round < 0 ? "begins" : "began"),
      campaign.now.round < 0 ? "not begun" : `now in round ${count(campaign.now.round)}`,
    ].map((text) => make("span", {}, text)),
    make("code", { title: "Fingerprint of the campaign" }, campaign.fingerprint.slice(0, 12)),
  );
}

// What one round can and cannot tell.
export function reading(estimates) {
  if (!estimates || estimates.suppressed_because) return null;
  if (!estimates.largest || estimates.numbers) return null;
  const { estimate, lower, upper } = estimates;
  const known = estimate.map((_, v) => v).filter((v) => estimate[v] !== null);
  // The farther end: an interval is cut at 0, where many estimates are.
  const errors = known.map((v) => Math.max(upper[v] - estimate[v], estimate[v] - lower[v])).sort((a, b) => a - b);
  return {
    error: errors[Math.floor(errors.length / 2)],
    bound: estimates.simultaneous_error,
    largest: estimates.largest,
    clear: estimates.clear,
    suppressed: estimates.suppressed,
    total: estimates.bins,
  };
}

// Values of sampled buckets that too few reports reach.
const notShown = ({ suppressed }) => (suppressed ? `; ${count(suppressed)} not shown, too few users sampled them` : "");

export function showTiles(model) {
  const { rounds, estimates, privacy } = model;
  const real = rounds.filter((one) => one.round >= 0);
  const found = reading(estimates);
  const reports = real.reduce((sum, one) => sum + one.n, 0);
  const reported = real.filter((one) => one.n > 0);
  const suppressed = reported.filter((one) => !one.shown).length;
  const where = `in ${quantity(reported.length, "round")}${suppressed ? `, ${count(suppressed)} suppressed` : ""}`;
  const entries = [["Reports counted", count(reports), where]];
  if (found) {
    entries.push(
      ["Most frequent", percent(found.largest.estimate, 1), `${found.largest.label}, ${interval(found.largest.lower, found.largest.upper, 1)} (95 %, chosen from all values) in round ${estimates.round}`],
      ["Error of a typical value", `± ${percent(found.error)}`, `95 %, with ${quantity(estimates.n, "report")}`],
      ["Significantly above 0", `${count(found.clear)} of ${count(found.total)}`, `95 %, all values at once${notShown(found)}`],
    );
  }
  const { mean: [mean] = [null], mean_lower: [lower] = [], mean_upper: [upper] = [] } = estimates?.numbers ?? {};
  if (mean !== null) entries.push(["Mean", plain(mean), `${plain(lower)} to ${plain(upper)} (95 %) in round ${estimates.round}`]);
  if (privacy) {
    const first = ["eps_1", plain(privacy.eps_1), privacy.eps_inf === null ? "in every report, no bound for ever" : `eps_inf ${plain(privacy.eps_inf)} · cap ${plain(privacy.cap)}`];
    entries.push(first);
  }
  tiles("tiles", entries);
}

export function showNotices(model) {
  const notices = [...findNotices(model)];
  const wanted = JSON.stringify(notices);
  const place = byId("notices");
  if (place.dataset.shown === wanted) return;
  place.dataset.shown = wanted;
  place.replaceChildren(
    ...notices.map(([kind, title, text, code]) =>
      make("div", { class: `notice ${kind}` }, make("h2", {}, title), make("p", {}, text), code ? make("pre", { tabindex: "0", role: "region", "aria-label": "Command" }, make("code", {}, code)) : null),
    ),
  );
}

export function clearNotices() {
  const place = byId("notices");
  place.dataset.shown = "";
  place.replaceChildren();
}

const NOT_OPEN = {
  paused: "It takes no reports until it is resumed. Devices get this answer, and drop what waits.",
  closed: "It takes no reports any more. Devices get this answer, and stop.",
  archived: "It takes no reports any more, and is no longer listed.",
  deleting: "It takes no reports any more, and all that it had counted is being deleted.",
  deleted: "It takes no reports any more, and all that it had counted is deleted.",
};
const RECENT = 5;
const MOST_TOLD = 6;

// Of the newest round that alarmed, unless it is long ago; each value once, whichever rules it alarmed under.
function* recent({ alarms }, newest) {
  const round = Math.max(...alarms.map((event) => event.round), -1);
  if (round < 0 || round < newest - RECENT) return;
  const values = new Map(alarms.filter((event) => event.round === round).flatMap((event) => event.alarms.map((one) => [one.value, one])));
  const told = [...values.values()].slice(0, MOST_TOLD).map((one) => `${one.label} (${itself(one, 1)}, ${deviations(one)} standard deviations)`);
  const more = values.size > MOST_TOLD ? `, and ${count(values.size - MOST_TOLD)} more` : "";
  yield ["warn", `Round ${round} differs from what earlier rounds predict`, `${told.join(", ")}${more}. The rules, and how many alarms are expected to be false, are below.`];
}

function* findNotices({ campaign, rounds, estimates, alarms }) {
  const real = rounds.filter((one) => one.round >= 0);
  if (campaign.state !== "open") yield ["warn", `This campaign is ${campaign.state}`, NOT_OPEN[campaign.state]];
  if (!real.some((one) => one.n > 0)) {
    if (campaign.state === "open") yield noReports(campaign, rounds);
    return;
  }
  yield* recent(alarms, real.at(-1).round);
  const least = campaign.terms.minimum_cohort;
  const small = real.filter((one) => one.n > 0 && one.n < least);
  if (small.length) {
    const which = small.length === 1 ? `Round ${small[0].round} has ${quantity(small[0].n, "report")}` : `${small.length} rounds have too few reports`;
    const all = small.length === real.filter((one) => one.n > 0).length;
    yield [
      all ? "warn" : "info",
      all ? "Too few users for any estimate" : "Some rounds have too few users",
      `${which}: fewer than the minimum cohort of ${count(least)}. Estimates of such a round are suppressed, to protect small groups. ${small.some((one) => one.state !== "closed") ? "Its reports are counted and show as soon as there are enough; a" : "A"} round that is closed with too few stays suppressed.`,
    ];
  }
  const found = reading(estimates);
  if (estimates && !estimates.numbers && estimates.suppressed && estimates.suppressed === estimates.bins) {
    yield [
      "warn",
      "Too few users sampled any value",
      `Each device reports on some of the values only, and fewer than the minimum cohort of ${count(least)} sampled any one of them in round ${estimates.round}. More users help, or more sampled values (d).`,
    ];
  } else if (found && found.clear === 0) {
    yield [
      "warn",
      `Noise is above the signal in round ${estimates.round}`,
      `No value stands out: with ${quantity(estimates.n, "report")} and ${quantity(found.total, "value")}, every error may reach ${percent(found.bound)} (all values at once, 95 %), and the largest estimate is ${percent(found.largest.estimate)}. Do not read an order of values out of it. More users help, fewer labels, or a larger eps_1.`,
    ];
  }
}

function noReports(campaign, rounds) {
  const { now, schedule, fingerprint } = campaign;
  const refused = rounds.reduce((sum, one) => sum + Object.values(one.refused).reduce((a, b) => a + b, 0), 0);
  const begun = now.round < 0 ? `Round 0 begins ${moment(schedule.start)}.` : `Round ${now.round} is running.`;
  const turned = refused ? ` ${quantity(refused, "report")} came and ${refused === 1 ? "was" : "were"} refused: see “Participation and refusals”.` : "";
  return [
    "info",
    "No reports yet",
    `${begun}${turned} Point clients at this campaign:`,
    `loloha report VALUE --campaign ${here()}/v1/campaigns/${fingerprint} --state client.json --consent`,
  ];
}
