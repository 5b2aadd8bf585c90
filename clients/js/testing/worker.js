/** A device for the test of kills: reports round after round and says so, until it is killed. */

import { writeSync } from "node:fs";
import { Sender, fileStorage } from "../src/node.js";

const [, , file, url, first, rounds] = process.argv;
const sender = new Sender(fileStorage(file), { first: 0.001, attempts: 2 });
await sender.agree(url);
for (let round = Number(first); round < Number(first) + Number(rounds); round++) {
  await sender.report("abc"[round % 3], { round });
  writeSync(1, `${round}\n`);
  if (round % 3 === 0) await sender.deliver();
}
await sender.deliver();
