// The page: fetches what the reader chose, draws it panel by panel as answers arrive, and asks again every few seconds.

import { showAlarms } from "./alarms.js";
import { get, withQuery } from "./api.js";
import { clear, savePicture, startCharts, systemIsDark } from "./chart.js";
import { fresh, read, write } from "./choice.js";
import { moment } from "./format.js";
import { MOST_LINES, showLines } from "./lines.js";
import { showMap } from "./map.js";
import { clearNotices, describe, listCampaigns, showNotices, showTiles, welcome } from "./overview.js";
import { fetchNumbers, showNumbers } from "./numbers.js";
import { byId, make, say, show, tiles } from "./page.js";
import { showPeople } from "./people.js";
import { showPrivacy } from "./privacy.js";
import { MOST_SHOWN, showRound } from "./round.js";
import { isEmpty, usualValues } from "./series.js";

const POLL = 5000;

let choice = read();
let model = {};
let timer = null;
let turn = 0;
// Whether the address asked for a campaign that is not here, so that another one is shown.
let isElsewhere = false;

// Fetching

async function refresh() {
  clearTimeout(timer);
  turn += 1;
  const mine = turn;
  const late = () => mine !== turn;
  let pause = POLL;
  try {
    await fetchAll(late);
    if (!late()) settle(null);
  } catch (error) {
    if (late()) return;
    pause = 1000 * (error.seconds ?? 5);
    settle(error);
  }
  if (!late() && !document.hidden) timer = setTimeout(refresh, pause);
}

async function fetchAll(late) {
  const { campaigns } = await get("v1/campaigns");
  if (late()) return;
  show("welcome", campaigns.length === 0);
  if (!campaigns.length) {
    show("campaign", false);
    listOnce(campaigns);
    welcome();
    return;
  }
  const campaign = campaigns.find((one) => one.fingerprint === choice.campaign) ?? campaigns.at(-1);
  if (choice.campaign && campaign.fingerprint !== choice.campaign) {
    choice = fresh(null);
    isElsewhere = true;
  }
  if (model.campaign?.fingerprint !== campaign.fingerprint) forget();
  model.campaign = campaign;
  listOnce(campaigns);
  once("head", [campaign], () => describe(campaign));
  document.title = `${campaign.name} · loloha collector`;
  show("campaign", true);
  await fetchCampaign(campaign, late);
}

// Nothing of one campaign may stand under the name of another.
function forget() {
  model = { shown: {} };
  document.body.dataset.state = "loading";
  for (const panel of document.querySelectorAll(".panel")) panel.hidden = true;
  for (const chart of document.querySelectorAll(".chart")) clear(chart.id);
  tiles("tiles", []);
  say("add-answer", "");
  clearNotices();
}

async function fetchCampaign(campaign, late) {
  const path = `v1/campaigns/${campaign.fingerprint}`;
  const { newest } = choice;
  const [rounds, series] = await Promise.all([
    get(`${path}/rounds`, { newest }),
    get(`${path}/series`, { newest, top: choice.top }),
    get(`${path}/privacy`).then((privacy) => {
      if (late()) return;
      model.privacy = privacy;
      once("privacy", [privacy, theme()], () => showPrivacy(model));
    }),
  ]);
  if (late()) return;
  model.rounds = rounds.rounds;
  model.panels = rounds.panels;
  once("people", [rounds, theme()], () => showPeople(model));
  showSeries(path, series);
  const asked = get(`${path}/alarms`);
  const [single, estimates, alarms] = await Promise.all([asked.then((told) => fetchSingle(path, series, told)), fetchRound(path), asked]);
  if (late()) return;
  model.alarms = alarms;
  once("alarms", [alarms], () => showAlarms(alarms));
  // Again, with the rings of alarms.
  if (series.numbers && (!choice.smoothed || !model.numbers)) drawNumbers({ data: series });
  // Rounds together take the collector a while: until they are there, single ones are.
  if (!choice.smoothed || !model.drawn?.together) drawLines(path, single);
  model.estimates = estimates;
  if (campaign.protocol.target !== "mean") once("round", [estimates, rounds, choice.count, choice.order, choice.projected, theme()], () => showRound({ ...model, choice, path }));
  once("tiles", [estimates, rounds, model.privacy], () => showTiles(model));
  once("notices", [estimates, rounds, campaign, alarms], () => showNotices(model));
  startCharts();
  if (!choice.smoothed) return;
  if (series.numbers) {
    const numbers = await fetchNumbers(path, series, choice.newest);
    if (!late()) drawNumbers(numbers);
    return;
  }
  const together = await fetchTogether(path, single);
  if (!late()) drawLines(path, together);
}

function drawLines(path, drawn) {
  const { campaign, alarms } = model;
  const address = withQuery(`${path}/smoothed`, { newest: choice.newest, format: "csv" });
  if (!drawn.data.numbers) once("lines", [drawn.data, drawn.columns.join(), drawn.problem, alarms, choice.windowed, choice.smoothed, theme()], () => showLines({ campaign, drawn, alarms, choice, remove, address }));
  model.drawn = drawn;
}

function drawNumbers(numbers) {
  model.numbers = numbers.together && numbers;
  once("numbers", [numbers.data, numbers.together, numbers.problem, model.alarms, choice.smoothed, theme()], () => showNumbers({ campaign: model.campaign, alarms: model.alarms, smoothed: choice.smoothed, ...numbers }));
}

function showSeries(path, data) {
  const { newest, top, masked } = choice;
  const series = { data, address: withQuery(`${path}/series`, { newest, top }), from: "" };
  if (data.round.length) series.from = moment(data.start[0]);
  // Until rounds together are there, single ones are.
  if (!choice.smoothed || !model.numbers) drawNumbers({ data });
  // Shares of users with at least a value are no frequencies of values.
  if (!data.numbers) once("map", [data, masked, newest, top, theme()], () => showMap({ campaign: model.campaign, series: { ...series, data }, choice }));
}

// The same values, each round estimated from all of them; as they are where that fails.
async function fetchTogether(path, single) {
  const value = single.columns.map((column) => single.data.value[column]);
  if (!value.length || isEmpty(single.data)) return single;
  try {
    const data = await get(`${path}/smoothed`, { newest: choice.newest, value });
    return isEmpty(data) ? single : { data, columns: value.map((_, column) => column), together: true };
  } catch (error) {
    return { ...single, problem: error.message };
  }
}

// The series that holds the values to draw, and their columns in it.
async function fetchSingle(path, series, alarms) {
  const { newest } = choice;
  const values = choice.values ?? usualValues(series, alarms);
  const within = values.filter((value) => value < model.campaign.bins).slice(0, MOST_LINES);
  let data = series;
  if (!within.every((value) => series.value.includes(value))) {
    data = await get(`${path}/series`, { newest, value: within });
  }
  return { data, columns: within.map((value) => data.value.indexOf(value)) };
}

// The round chosen, else the newest that is shown, else the newest.
async function fetchRound(path) {
  const reported = model.rounds.filter((one) => one.round >= 0 && one.n > 0);
  const chosen =
    reported.find((one) => one.round === choice.round) ?? reported.findLast((one) => one.shown) ?? reported.at(-1);
  if (!chosen) return null;
  return get(`${path}/rounds/${chosen.round}/estimates`, { projected: choice.projected ? true : null, top: MOST_SHOWN });
}

// Drawing, only what differs from the last time

function once(name, inputs, work) {
  const before = model.shown[name];
  if (before && before.length === inputs.length && before.every((one, i) => one === inputs[i])) return;
  model.shown[name] = inputs;
  work();
}

let listed = null;

function listOnce(campaigns) {
  const wanted = `${campaigns.map((one) => one.fingerprint)} ${model.campaign?.fingerprint}`;
  if (listed === wanted) return;
  listed = wanted;
  listCampaigns(campaigns, model.campaign?.fingerprint, (fingerprint) => choose(fresh(fingerprint), { asNewPage: true }));
}

function theme() {
  return `${document.documentElement.dataset.theme ?? "auto"} ${systemIsDark.matches}`;
}

function settle(error) {
  const now = new Date().toISOString().slice(11, 19);
  show("problem", error !== null || isElsewhere);
  document.body.dataset.state = error ? "failed" : "ready";
  if (error) {
    const earlier = model.campaign ? " These are earlier results." : "";
    alarm("No new results", `${error.message}${earlier} The page tries again by itself.`);
    say("status", "Trying again …");
  } else {
    if (isElsewhere) alarm("No such campaign here", "This collector does not have the campaign in the address. Its newest one is shown.");
    // Not on every poll: a screen reader would read it out each time.
    say("status", "Live");
    byId("status").title = `Asked at ${now} UTC, and every ${POLL / 1000} s`;
  }
}

function alarm(title, text) {
  const place = byId("problem");
  if (place.textContent !== title + text) place.replaceChildren(make("h2", {}, title), make("p", {}, text));
}

// What the reader does

function choose(patch, how = {}) {
  isElsewhere = false;
  choice = { ...choice, ...patch };
  write(choice, how);
  refresh();
}

// What was chosen last, though it may not be drawn yet.
function chosenValues() {
  return choice.values ?? model.drawn.columns.map((column) => model.drawn.data.value[column]);
}

function remove(value) {
  const left = chosenValues().filter((one) => one !== value);
  if (left.length) choose({ values: left });
  byId("find").focus();
}

function add(value) {
  const shown = chosenValues();
  if (shown.includes(value)) return "It is drawn already.";
  if (shown.length >= MOST_LINES) return `At most ${MOST_LINES} lines are shown: remove one first.`;
  choose({ values: [...shown, value] });
  return "";
}

async function find(text) {
  const { fingerprint } = model.campaign;
  const { matches } = await get(`dashboard/labels/${fingerprint}`, { q: text });
  return matches;
}

function listen() {
  for (const name of ["newest", "top", "count"]) {
    byId(name).addEventListener("change", (event) => choose({ [name]: Number(event.target.value) }));
  }
  byId("order").addEventListener("change", (event) => choose({ order: event.target.value }));
  for (const name of ["masked", "projected", "windowed", "smoothed"]) {
    byId(name).addEventListener("change", (event) => choose({ [name]: event.target.checked }));
  }
  byId("numbers-smoothed").addEventListener("change", (event) => choose({ smoothed: event.target.checked }));
  byId("which").addEventListener("change", (event) => choose({ round: Number(event.target.value) }));
  byId("earlier").addEventListener("click", () => step(-1));
  byId("later").addEventListener("click", () => step(1));
  byId("most").addEventListener("click", () => choose({ values: null }));
  listenToAdding();
  for (const button of document.querySelectorAll("[data-picture]")) {
    button.addEventListener("click", () => savePicture(button.dataset.picture, button.dataset.picture.replace("-chart", "")));
  }
  listenToTheme();
  window.addEventListener("popstate", () => choose(read()));
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
  byId("skip").addEventListener("click", (event) => {
    // The address holds what was chosen: the link must not change it.
    event.preventDefault();
    byId("main").focus();
  });
}

function step(by) {
  const numbers = model.rounds.filter((one) => one.round >= 0 && one.n > 0).map((one) => one.round);
  const round = numbers[numbers.indexOf(model.estimates.round) + by];
  if (round !== undefined) choose({ round });
}

function listenToAdding() {
  let waiting = null;
  byId("find").addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const matches = await find(event.target.value).catch(() => []);
      byId("found").replaceChildren(...matches.map(({ label }) => make("option", { value: label })));
    }, 150);
  });
  byId("add").addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = byId("find").value.trim();
    if (!text) return;
    const [best] = await find(text).catch(() => []);
    const answer = best ? add(best.value) : `No value is labelled “${text}”.`;
    say("add-answer", answer);
    if (!answer) byId("find").value = "";
  });
}

function listenToTheme() {
  const select = byId("theme");
  select.value = document.documentElement.dataset.theme ?? "auto";
  select.addEventListener("change", () => {
    if (select.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = select.value;
    try {
      localStorage.setItem("loloha-theme", select.value);
    } catch {
      // Storage may be forbidden: the choice then lasts as long as the page.
    }
    refresh();
  });
  systemIsDark.addEventListener("change", refresh);
}

function listenToMap() {
  // Plotly adds `on` to the node once it has drawn.
  const node = byId("map-chart");
  const observer = new MutationObserver(() => {
    if (!node.on || node.dataset.listening) return;
    node.dataset.listening = "1";
    node.on("plotly_click", ({ points: [point] }) => {
      const value = model.drawn && point.y < (point.fullData?.y?.length ?? 0) ? valueAt(point.y) : null;
      choose({ round: point.x });
      if (value !== null) say("add-answer", add(value));
    });
  });
  observer.observe(node, { attributes: true, attributeFilter: ["data-drawn"] });
}

function valueAt(row) {
  return model.shown.map?.[0].value[row] ?? null;
}

listen();
listenToMap();
refresh();
