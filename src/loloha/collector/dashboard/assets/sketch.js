// The map at once, as bare pixels, while the charts' library is still on its way: it then takes this one's place.

import { colours } from "./chart.js";
import { byId, make } from "./page.js";

// z in 0..most, null where there is nothing; left, top, right and bottom as the chart will have them.
export function sketch(id, z, most, { l, t, r, b }, height) {
  const node = byId(id);
  if (node.dataset.drawn || node.querySelector("canvas")) return;
  const canvas = make("canvas", { width: z[0].length, height: z.length, class: "sketch", "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(z[0].length, z.length);
  const steps = colours().scale.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  z.flat().forEach((value, i) => {
    if (value !== null) pixels.data.set([...between(steps, value / most), 255], 4 * i);
  });
  context.putImageData(pixels, 0, 0);
  Object.assign(canvas.style, {
    left: `${l}px`,
    top: `${t}px`,
    width: `${node.clientWidth - l - r}px`,
    height: `${height - t - b}px`,
  });
  node.append(canvas);
}

function between(steps, share) {
  const at = Math.min(1, Math.max(0, share)) * (steps.length - 1);
  const below = Math.min(steps.length - 2, Math.floor(at));
  return steps[below].map((part, i) => Math.round(part + (at - below) * (steps[below + 1][i] - part)));
}
