// A device to play with: the client that ships, a crowd of 3 000 more of them, and an estimate of what they hold.

import { Campaign, Client, encode } from "./index.js";
import { canonical } from "./json.js";
import { interval, percent } from "../format.js";
import { byId, make, tiles } from "../page.js";

const LABELS = ["not at all", "under 1 h", "1–2 h", "2–4 h", "4–8 h", "8–16 h", "16–30 h", "over 30 h"];
const TRUTH = [0.3, 0.22, 0.16, 0.12, 0.09, 0.06, 0.03, 0.02];
const CROWD = 3000;
const G = 3;
const EPS_INF = 4;
const SCALE = 2 ** 53;
const SVG = "http://www.w3.org/2000/svg";

let world;

function shape(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const row = (cells) => make("tr", {}, ...cells.map((text, i) => make(i ? "td" : "th", i ? {} : { scope: "row" }, text)));

// -- the world: one campaign, your device, everybody else's

async function begin() {
  const eps_1 = Number(byId("eps").value);
  const protocol_ = { type: "ololoha", version: 1, k: LABELS.length, eps_inf: EPS_INF, eps_1, calibration: "tight", hash: "linear", g: G };
  const document_ = {
    type: "loloha-campaign", version: 1, name: "Hours of use", labels: LABELS, keys: "drawn", protocol: protocol_,
    round: { start: "2026-01-01T00:00:00Z", seconds: 604800 },
  };
  const campaign = await Campaign.read(canonical(document_));
  const { protocol } = campaign;
  const crowd = Array.from({ length: CROWD }, (_, i) => ({ client: new Client(protocol), value: quantile((i + 0.5) / CROWD) }));
  const me = new Client(protocol);
  world = { campaign, protocol, crowd, me, round: -1, rounds: [], last: null, numbers: numbers(protocol) };
  byId("answer").textContent = "";
  await show();
}

function quantile(share) {
  let sum = 0;
  const found = TRUTH.findIndex((part) => (sum += part) > share);
  return found < 0 ? TRUTH.length - 1 : found;
}

// p_star and q_star from the thresholds that devices draw with, and from all keys of the family.
function numbers({ encoding, first, second }) {
  const [p1, p2] = [first[0] / SCALE, second[0] / SCALE];
  const [q1, q2] = [(1 - p1) / (G - 1), (1 - p2) / (G - 1)];
  const p = p1 * p2 + (G - 1) * q1 * q2;
  const q = (1 - p) / (G - 1);
  const keys = Array.from({ length: 1000 }, (_, key) => key).filter((key) => encoding.isKey(key));
  const same = keys.filter((key) => encoding.memoIndex(key, 0) === encoding.memoIndex(key, 1)).length / keys.length;
  return { p, q: same * p + (1 - same) * q };
}

// -- one round

async function report(times) {
  const value = Number(document.querySelector("[name=value]:checked").value);
  for (let i = 0; i < times; i++) {
    world.round += 1;
    const mine = world.me.report(value, world.round);
    world.last = { value, report: mine };
    const cell = world.protocol.encoding.memoIndex(mine.key, value);
    const kept = JSON.parse(await world.me.save()).memo.find(([x]) => x === cell)[1];
    const seen = [world.round, mine.y, speaksFor(mine).join(", ")];
    world.rounds.unshift({ seen, secret: [LABELS[value], cell, kept], cell, kept, y: mine.y, label: LABELS[value] });
  }
  byId("answer").textContent = "";
  await show();
}

async function again() {
  if (!world.last) return;
  const { key, y } = world.me.report((world.last.value + 1) % LABELS.length, world.round);
  const same = key === world.last.report.key && y === world.last.report.y;
  byId("answer").textContent = same
    ? `Round ${world.round} is answered: the device gave the same report again, even for another value.`
    : "The device answered twice: that must never happen.";
}

const speaksFor = ({ key, y }) => LABELS.filter((_, v) => world.protocol.encoding.memoIndex(key, v) === y);

function estimate() {
  const support = LABELS.map(() => 0);
  const reports = [...world.crowd.map(({ client, value }) => client.report(value, world.round)), world.last.report];
  for (const { key, y } of reports) {
    for (let v = 0; v < LABELS.length; v++) if (world.protocol.encoding.memoIndex(key, v) === y) support[v] += 1;
  }
  const { p, q } = world.numbers;
  const n = reports.length;
  return support.map((count) => {
    const f = (count / n - q) / (p - q);
    return { f, lower: end(f, -1, n, p, q), upper: end(f, 1, n, p, q) };
  });
}

// An end of the 95 % interval, as the server's Estimate.interval has it.
function end(f, side, n, p, q) {
  const z = 1.959963984540054;
  const square = n * (p - q) ** 2;
  const none = (q * (1 - q)) / square;
  const slope = (p * (1 - p)) / square - none;
  const skew = Math.max(0, side < 0 ? 1 - 2 * q : 2 * p - 1);
  const t = f + (side * (1 / 2 + ((z * z - 3) / 6) * skew)) / (n * (p - q));
  const inside = none + slope * t + (z * slope) ** 2 / 4;
  const root = inside < 0 ? t : t + (z * z * slope) / 2 + side * z * Math.sqrt(inside);
  return Math.min(1, Math.max(0, side < 0 ? Math.min(root, t) : Math.max(root, t)));
}

// -- what is shown

async function show() {
  const { me, protocol, round, last } = world;
  byId("status").textContent = round < 0 ? "No round yet" : `Round ${round}`;
  byId("steps").replaceChildren(...steps());
  const shown = byId("secret").checked;
  const columns = ["Round", "Report", "Values it speaks for", ...(shown ? ["Secret: your value", "its cell", "kept answer"] : [])];
  byId("columns").replaceChildren(...columns.map((name) => make("th", { scope: "col" }, name)));
  const cells = ({ seen, secret }) => row([...seen, ...(shown ? secret : [])].map(String));
  byId("rounds").replaceChildren(...world.rounds.slice(0, 30).map(cells));
  for (const id of ["message", "history", "chart", "table"]) byId(id).toggleAttribute("hidden", !last);
  tiles("tiles", [
    ["Spent", String(me.loss), `of ${protocol.cap} at most: ${EPS_INF} for each cell ever met. When a value changes can show in the reports, too`],
    ["One report", `eps_1 = ${protocol.spec.eps_1}`, `changes the odds between two values ${times(protocol.spec.eps_1)} times at most`],
    ["One value, for ever", `eps_inf = ${EPS_INF}`, `all its reports together: ${times(EPS_INF)} times at most`],
    ["Cells", `g = ${G}`, `for ${LABELS.length} values: a report never tells values of one cell apart`],
  ]);
  if (!last) {
    byId("leaves-lead").textContent = "Nothing yet.";
    byId("estimate-lead").textContent = `${CROWD} other devices in this page report with you. Report once to see the estimate.`;
    return;
  }
  const reporter = await me.reporter(round);
  const message = JSON.parse(encode(world.campaign, last.report, { round, reporter }));
  byId("message").textContent = JSON.stringify(message, null, 2);
  byId("leaves-lead").textContent =
    `Key ${last.report.key} and symbol ${last.report.y}, which speaks for ${speaksFor(last.report).join(", ") || "no value at all"}. ` +
    "It has the same size for every value and history. The reporter is new in each round; " +
    "the key stays, and joins your rounds as far as few others have the same one.";
  const found = estimate();
  world.found = found;
  byId("estimate-lead").textContent =
    `${CROWD + 1} reports of round ${round}: grey is the truth, which nobody sees, blue the estimate, with its 95 % interval.`;
  draw(found);
  byId("estimates").replaceChildren(
    ...found.map(({ f, lower, upper }, v) => row([LABELS[v], percent(TRUTH[v], 1), percent(f, 1), interval(lower, upper, 1)])),
  );
}

function steps() {
  const { last, me } = world;
  const step = (head, text) => make("li", {}, make("b", {}, head), ` ${text}`);
  if (!last) {
    return [
      step("Hash.", `Once, the device drew a key: it sorts the ${LABELS.length} values into ${G} cells.`),
      step("Keep.", "For each cell it meets it draws one noisy answer, once and for ever."),
      step("Blur.", "Each round it draws a fresh report from the kept answer."),
    ];
  }
  const { label, cell, kept, y } = world.rounds[0];
  const { key } = last.report;
  const shown = byId("secret").checked;
  const mates = LABELS.filter((_, v) => world.protocol.encoding.memoIndex(key, v) === cell);
  return [
    step("Hash.", `Key ${key} puts “${label}” into cell ${cell}, with ${mates.length} of ${LABELS.length} values: ${mates.join(", ")}.`),
    step("Keep.", `For cell ${cell} one answer was drawn, once and for ever: ` +
      `${shown ? `${kept}, ${kept === cell ? "which happens to be the truth" : "a lie that stays"}` : "the truth or a lie, which nobody is told"}. ` +
      `It cost ${EPS_INF}; changing within the cell costs nothing. Spent so far: ${me.loss}.`),
    step("Blur.", `From that answer this round's report was drawn: ${y}${shown ? (y === kept ? ", unchanged" : ", changed by fresh noise") : ""}.`),
  ];
}

const times = (eps) => Math.exp(eps).toFixed(1);

function draw(found) {
  // As wide as the page has room, so that texts keep their size.
  const width = byId("chart").clientWidth || 640;
  const [left, height] = [76, 34 * LABELS.length];
  byId("chart").setAttribute("viewBox", `0 0 ${width} ${height}`);
  const most = Math.max(...TRUTH, ...found.map(({ f, upper }) => Math.max(f, upper)));
  const least = Math.min(0, ...found.map(({ f }) => f));
  const x = (share) => left + ((share - least) / (most - least)) * (width - left - 4);
  const bar = (kind, y, share) =>
    shape("rect", { class: kind, y, height: 12, x: Math.min(x(share), x(0)), width: Math.abs(x(share) - x(0)) });
  const line = (kind, x1, y1, x2, y2) => shape("line", { class: kind, x1, y1, x2, y2 });
  const nodes = found.flatMap(({ f, lower, upper }, v) => {
    const y = 34 * v + 4;
    const text = shape("text", { x: left - 8, y: y + 17, "text-anchor": "end" }, LABELS[v]);
    return [bar("truth", y, TRUTH[v]), bar("estimate", y + 13, f), line("interval", x(lower), y + 19, x(upper), y + 19), text];
  });
  byId("chart").replaceChildren(...nodes, line("base", x(0), 0, x(0), height));
}

// -- begin

byId("values").replaceChildren(
  ...LABELS.map((label, v) => {
    const input = make("input", { type: "radio", name: "value", value: v, ...(v === 2 ? { checked: "" } : {}) });
    return make("label", {}, input, label);
  }),
);
const busy = (task) => () => task().catch((error) => (byId("answer").textContent = error.message));
byId("once").addEventListener("click", busy(() => report(1)));
byId("ten").addEventListener("click", busy(() => report(10)));
byId("again").addEventListener("click", busy(again));
byId("anew").addEventListener("click", busy(begin));
byId("eps").addEventListener("change", busy(begin));
byId("secret").addEventListener("change", busy(show));
addEventListener("resize", () => world.last && draw(world.found));
busy(begin)();
