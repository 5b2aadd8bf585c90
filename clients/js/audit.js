#!/usr/bin/env node
/**
 * Answers `loloha audit --command "node audit.js type=biloloha k=8 ..."`, the arguments being every
 * parameter of the protocol: reads lines `user round value`, and writes one `key y` for each.
 */

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { Client, Protocol, SecureRng } from "./src/index.js";

/** What answers the lines: users come one after the other, each is a new client. */
export function auditor(protocol) {
  const rng = new SecureRng();
  let [user, client] = [null, null];
  return (line) => {
    const [who, round, value] = line.split(" ").map(Number);
    if (who !== user) [user, client] = [who, new Client(protocol, { rng })];
    const { key, y } = client.report(value, round);
    const numbers = [key ?? []].flat();
    return `${numbers.length ? numbers : "-"} ${protocol.encoding.answerPlain(y)}`;
  };
}

/** The protocol that `name=value` words describe. */
function protocolOf(words) {
  const members = words.map((word) => {
    const [name, value] = word.split("=");
    return [name, /^[\d.]/.test(value) ? Number(value) : value];
  });
  return new Protocol({ version: 1, ...Object.fromEntries(members) });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const answer = auditor(protocolOf(process.argv.slice(2)));
  for await (const line of createInterface({ input: process.stdin })) process.stdout.write(`${answer(line)}\n`);
}
