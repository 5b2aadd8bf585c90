/** Reports a second of processor time, whatever else the machine does: `npm run bench`. */

import { Client, Protocol } from "./src/index.js";

const LONGITUDINAL = { version: 1, eps_inf: 2, eps_1: 1 };
const CASES = [
  [{ ...LONGITUDINAL, type: "ololoha", k: 96, g: 5, hash: "linear", calibration: "tight" }, 400_000],
  [{ ...LONGITUDINAL, type: "ololoha", k: 96, g: 4, hash: "prime", calibration: "tight" }, 400_000],
  [{ ...LONGITUDINAL, type: "rappor", k: 1000 }, 10_000],
];

for (const [spec, reports] of CASES) {
  const client = new Client(new Protocol(spec));
  const answer = (rounds, first) => {
    for (let i = 0; i < rounds; i++) client.report(i % spec.k, first + i);
  };
  const warm = Math.ceil(reports / 20);
  answer(warm, 0);
  const start = process.cpuUsage();
  answer(reports, warm);
  const { user, system } = process.cpuUsage(start);
  const rate = Math.round((1e6 * reports) / (user + system));
  console.log(`${spec.type} ${spec.hash ?? ""} k = ${spec.k}: ${rate} reports/s`);
}
