// What the reader chose, in the address: it can be shared, and going back works.

const DEFAULTS = {
  campaign: null,
  round: null,
  values: null,
  newest: 100,
  top: 40,
  count: 200,
  order: "domain",
  masked: false,
  projected: false,
  windowed: false,
  smoothed: true,
};
const NUMBERS = ["round", "newest", "top", "count"];
const FLAGS = ["masked", "projected", "windowed", "smoothed"];

export function read() {
  const given = new URLSearchParams(window.location.hash.slice(1));
  const choice = { ...DEFAULTS };
  for (const [name, text] of given) {
    if (NUMBERS.includes(name) && /^\d{1,16}$/.test(text)) choice[name] = Number(text);
    else if (FLAGS.includes(name)) choice[name] = text === "1";
    // What is no fingerprint is nobody's: the page says that it is not here.
    else if (name === "campaign") choice.campaign = /^[0-9a-f]{64}$/.test(text) ? text : "unknown";
    else if (name === "order" && ["domain", "frequency"].includes(text)) choice.order = text;
    else if (name === "values") choice.values = numbersOf(text);
  }
  for (const name of ["newest", "top", "count"]) choice[name] = Math.min(1000, Math.max(1, choice[name]));
  return choice;
}

function numbersOf(text) {
  const numbers = text.split(",").filter((one) => /^\d{1,9}$/.test(one)).map(Number);
  return numbers.length ? [...new Set(numbers)] : null;
}

export function write(choice, { asNewPage = false } = {}) {
  const parts = Object.entries(choice)
    .filter(([name, value]) => value !== null && String(value) !== String(DEFAULTS[name]))
    .map(([name, value]) => `${name}=${value === true ? "1" : value}`);
  const address = `#${parts.join("&")}`;
  if (asNewPage) window.history.pushState(null, "", address);
  else window.history.replaceState(null, "", address);
}

export const fresh = (campaign) => ({ ...DEFAULTS, campaign });
