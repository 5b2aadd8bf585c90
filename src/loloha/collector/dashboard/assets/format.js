// Numbers and moments as people read them. Frequencies come in 0..1 and are shown in per cent.

const whole = new Intl.NumberFormat("en");

export const NONE = "–";

export function count(number) {
  return number === null || number === undefined ? NONE : whole.format(number);
}

export function percent(share, digits = 2) {
  if (share === null || share === undefined) return NONE;
  // A minus sign, not a hyphen; and no "-0.00".
  const text = Math.abs(100 * share).toFixed(digits);
  return `${100 * share < 0 && Number(text) > 0 ? "−" : ""}${text} %`;
}

export function plain(number) {
  if (number === null || number === undefined) return "none";
  return String(Number(number.toPrecision(4)));
}

// "2026-01-01T00:00:00Z" -> "2026-01-01 00:00 UTC"
export function moment(text) {
  if (!text) return NONE;
  const seconds = text.slice(17, 19) === "00" ? "" : text.slice(16, 19);
  return `${text.slice(0, 10)} ${text.slice(11, 16)}${seconds} UTC`;
}

export function duration(seconds) {
  for (const [name, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (seconds % size === 0) return quantity(seconds / size, name);
  }
  return quantity(seconds, "second");
}

export function quantity(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

export function shorten(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

export function interval(lower, upper, digits = 2) {
  return `${percent(lower, digits)} to ${percent(upper, digits)}`;
}
