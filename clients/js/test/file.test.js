/** The state in a file: private, whole, one writer at a time, whatever is killed. */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, promises as fs } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { StateError, fileStorage } from "../src/node.js";
import { published } from "../testing/collector.js";

const KILLS = Number(process.env.LOLOHA_KILLS ?? 4);
const ROUNDS = 6;
const WORKER = fileURLToPath(new URL("../testing/worker.js", import.meta.url));
const folder = () => mkdtempSync(path.join(tmpdir(), "loloha-"));

test("a state is written whole, for its owner alone, and deleted with every draft", async () => {
  const file = path.join(folder(), "state");
  const storage = fileStorage(file);
  assert.equal(await storage.read(), null);
  await storage.change(async (text) => {
    assert.equal(text, null);
    return "one";
  });
  assert.equal((await fs.stat(file)).mode & 0o777, 0o600);
  await storage.change(async () => undefined);
  assert.equal(await storage.read(), "one");
  await fs.writeFile(`${file}.new`, "what a killed write left");
  await storage.change(async (text) => `${text} two`);
  assert.equal(await storage.read(), "one two");
  await assert.rejects(storage.change(() => Promise.reject(new Error("no"))), /no/);
  await fs.writeFile(`${file}.new`, "what a killed write left");
  await storage.change(async () => null);
  assert.deepEqual(await fs.readdir(path.dirname(file)), []);
  await storage.change(async () => null);
});

test("a link is followed, not replaced; both names are one state", async () => {
  const where = folder();
  const [file, link] = ["state", "link"].map((name) => path.join(where, name));
  await fileStorage(file).change(async () => "one");
  await fs.symlink(file, link);
  await fileStorage(link).change(async (text) => `${text} two`);
  assert.ok((await fs.lstat(link)).isSymbolicLink());
  assert.equal(await fileStorage(file).read(), "one two");
  let inside = 0;
  const step = async (text) => {
    assert.equal(++inside, 1);
    await new Promise(setImmediate);
    inside -= 1;
    return `${text}.`;
  };
  const many = [file, link, file, link].map((name) => fileStorage(name).change(step));
  await Promise.all(many);
  assert.equal(await fileStorage(file).read(), "one two....");
});

test("a folder that is not there, a folder for a file, a full one", async () => {
  const where = folder();
  for (const file of [path.join(where, "no", "state"), where]) {
    await assert.rejects(fileStorage(file).change(async () => "one"), StateError);
  }
  assert.deepEqual(await fs.readdir(where), []);
});

test("a pipe or a folder in place of a file, and a file beyond any state, are refused at once", async () => {
  const place = folder();
  const pipe = path.join(place, "pipe");
  execFileSync("mkfifo", [pipe]);
  const large = path.join(place, "large");
  await fs.truncate(await fs.writeFile(large, "").then(() => large), 2 ** 31);
  for (const [file, why] of [[pipe, /regular file/], [place, /regular file/], [large, /256 MiB/]]) {
    await assert.rejects(fileStorage(file).read(), (error) => error instanceof StateError && why.test(error.message));
    await assert.rejects(fileStorage(file).change(async () => "new"), StateError);
  }
});

test(`killed ${KILLS} times: nothing twice, nothing lost, no second draw`, async () => {
  const { text, url } = await published();
  const known = new Map();
  const differing = [];
  const server = createServer(async (request, response) => {
    if (request.method === "GET") return response.end(text);
    let body = "";
    for await (const part of request) body += part;
    const { round, reporter } = JSON.parse(body);
    const before = known.get(round);
    known.set(round, body);
    if (before !== undefined && before !== body) differing.push([round, reporter]);
    // Counted, and now and then the answer is lost on its way.
    if (Math.random() < 0.3) return request.socket.destroy();
    const counted = before === undefined ? 1 : 0;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ accepted: counted, duplicates: 1 - counted, refused: [], reporter }));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = `http://127.0.0.1:${server.address().port}${new URL(url).pathname}`;
  const file = path.join(folder(), "state");
  const promised = new Set();
  const queued = async () => JSON.parse(await fs.readFile(file, "utf8")).enrolments[0].queue;

  const run = async (first, rounds, kill) => {
    const child = spawn(process.execPath, [WORKER, file, address, first, rounds], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    child.stdout.on("data", (data) => {
      // Dies some time after its first word, in the middle of whatever it does then.
      if (!said && kill) setTimeout(() => child.kill("SIGKILL"), Math.random() * 40);
      said += data;
    });
    const [code] = await once(child, "close");
    for (const line of said.split("\n").slice(0, -1)) promised.add(Number(line));
    return code;
  };

  for (let i = 0; i < KILLS; i++) await run(i * ROUNDS, ROUNDS * 3, true);
  // Until the queue is empty.
  for (let i = 0; i < 20; i++) {
    assert.equal(await run(KILLS * ROUNDS + 20, 1, false), 0);
    if ((await queued()).length === 0) break;
  }
  server.closeAllConnections();
  server.close();
  assert.deepEqual(differing, []);
  const lost = [...promised].filter((round) => !known.has(round));
  assert.deepEqual(lost, []);
  assert.ok(promised.size > KILLS);
  assert.deepEqual(await queued(), []);
});
