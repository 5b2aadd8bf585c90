// Drawing with plotly, in the colours of the theme. Colours are never the only sign: lines differ in dash and marker.

import { byId } from "./page.js";

const SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

const LIGHT = {
  ink: "#1b2430",
  soft: "#55606e",
  grid: "#e3e7ec",
  zero: "#8b95a1",
  accent: "#1f6fb2",
  weak: "#b8c4d0",
  warn: "#a34700",
  tip: "#ffffff",
  scale: ["#f3f6f9", "#c2d9ea", "#7fb2d6", "#3a7fb8", "#154a8a", "#0a1f47"],
  lines: ["#0072b2", "#c24e00", "#00795a", "#8f3f76", "#8a6100", "#1c1c1c", "#3b8fc2", "#5a4fcf"],
};
const DARK = {
  ink: "#e8edf3",
  soft: "#a5b0bd",
  grid: "#2c3642",
  zero: "#6d7986",
  accent: "#6cb6f0",
  weak: "#46525f",
  warn: "#ffb070",
  tip: "#1d252e",
  scale: ["#161c23", "#173f66", "#1f6d92", "#3fa39b", "#a6cf6a", "#fdf3a0"],
  lines: ["#6cb6f0", "#ffa45c", "#4fd1a5", "#f09ad0", "#f0d264", "#ffffff", "#9ad4ff", "#b7adff"],
};
export const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "solid", "dash", "dot"];
export const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "cross", "triangle-down", "star"];

export const systemIsDark = window.matchMedia("(prefers-color-scheme: dark)");

export function colours() {
  const chosen = document.documentElement.dataset.theme;
  const dark = chosen ? chosen === "dark" : systemIsDark.matches;
  return dark ? DARK : LIGHT;
}

// Plotly reads a few HTML tags in text, links among them: a label is not to become one. Nor do we use <b> and the like:
// they turn into inline styles, which the page's policy forbids.
export function literal(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

export function translucent(hex, alpha) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${r}, ${g}, ${b}, ${alpha})`;
}

export function scale() {
  const steps = colours().scale;
  return steps.map((colour, i) => [i / (steps.length - 1), colour]);
}

// At most `most` of 0..size-1, evenly spread.
export function ticks(size, most) {
  const step = Math.max(1, Math.ceil(size / Math.max(1, most)));
  return Array.from({ length: Math.ceil(size / step) }, (_, i) => i * step);
}

export function axis(more = {}) {
  const { soft, grid, zero } = colours();
  return {
    gridcolor: grid,
    linecolor: grid,
    zerolinecolor: zero,
    tickfont: { color: soft, size: 11 },
    title: titled(""),
    // Finding the margin means drawing twice: `margin` below states it.
    automargin: false,
    fixedrange: true,
    ...more,
  };
}

// Pixels from side to side; a chart that is hidden has none yet.
export function breadth(id) {
  return byId(id).clientWidth || Math.min(600, window.innerWidth - 60);
}

// Pixels that the longest of these texts takes, at the size of the axes.
export function room(texts) {
  return 14 + Math.ceil(6.6 * Math.max(1, ...texts.map((text) => text.length)));
}

export function titled(text) {
  return { text, font: { color: colours().soft, size: 12 }, standoff: 8 };
}

// Above the chart, from the left.
export const LEGEND = { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 11 } };

// A dashed line across the chart, and its name above the chart, where no bar lies under it: parts of a layout.
export function mark(y, text, colour) {
  return {
    shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color: colour, width: 1.5, dash: "dash" } }],
    annotations: [{ xref: "paper", x: 1, xanchor: "right", yref: "paper", y: 1, yanchor: "bottom", showarrow: false, text: `dashed: ${text}`, font: { color: colour, size: 12 } }],
  };
}

// Rounds on the horizontal axis: whole numbers, few enough to be read.
export function roundAxis(first, last, width, title) {
  const room = Math.max(3, Math.floor(width / 48));
  const span = last - first + 1;
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000].find((one) => span / one <= room) ?? span;
  const tick0 = Math.ceil(first / step) * step;
  return axis({ title: titled(title), range: [first - 0.6, last + 0.6], tick0, dtick: step, tickformat: "d", showgrid: false, zeroline: false });
}

// The library takes a second to start, in which nothing else can be drawn: it waits until the numbers are there.
let start = null;
const loaded = new Promise((resolve) => {
  start = () => {
    const script = document.createElement("script");
    script.src = byId("charts").href;
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => resolve(null));
    document.head.append(script);
  };
});

export function startCharts() {
  if (!start) return;
  const now = start;
  start = null;
  // After the next paint.
  requestAnimationFrame(() => setTimeout(now));
}

// What each chart is to show, until it comes near the part of the page that is seen.
const waiting = new Map();

const seen = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => flush(entry.target.id)),
  { rootMargin: "200px" },
);

window.addEventListener("beforeprint", () => [...waiting.keys()].forEach(flush));

export function draw(id, { data, layout, summary }) {
  const node = byId(id);
  node.setAttribute("role", "img");
  node.setAttribute("aria-label", summary);
  node.hidden = false;
  // Its place is kept, so that nothing jumps when it appears.
  node.style.minHeight = `${layout.height}px`;
  waiting.set(id, { data, layout });
  // Observing anew reports at once whether it can be seen.
  seen.unobserve(node);
  seen.observe(node);
}

async function flush(id) {
  const plotly = await loaded;
  const node = byId(id);
  const wanted = waiting.get(id);
  if (!wanted) return;
  waiting.delete(id);
  if (plotly) await render(plotly, node, wanted.data, wanted.layout);
  else node.textContent = "The chart could not be loaded; the table below holds the same numbers.";
}

function render(plotly, node, data, layout) {
  const { ink, tip, grid } = colours();
  const base = {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: SANS, color: ink, size: 12 },
    margin: { l: 48, r: 12, t: 12, b: 40 },
    hoverlabel: { bgcolor: tip, bordercolor: grid, font: { family: SANS, color: ink }, align: "left" },
    dragmode: false,
    ...layout,
  };
  return plotly.react(node, data, base, { responsive: true, displayModeBar: false }).then(() => {
    node.querySelector(".sketch")?.remove();
    node.dataset.drawn = String(Number(node.dataset.drawn ?? 0) + 1);
  });
}

export function clear(id) {
  const node = byId(id);
  waiting.delete(id);
  if (window.Plotly && node.classList.contains("js-plotly-plot")) window.Plotly.purge(node);
  node.replaceChildren();
  delete node.dataset.drawn;
  node.style.minHeight = "";
  node.hidden = true;
}

export async function savePicture(id, name) {
  const plotly = await loaded;
  const node = byId(id);
  if (!plotly || !node.data) return;
  const background = getComputedStyle(document.body).backgroundColor;
  const address = await plotly.toImage(
    { data: node.data, layout: { ...node.layout, paper_bgcolor: background } },
    { format: "png", width: node.clientWidth, height: node.clientHeight, scale: 2 },
  );
  const link = document.createElement("a");
  link.href = address;
  link.download = `${name}.png`;
  link.click();
}
