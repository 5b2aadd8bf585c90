/** Where a state is stored under Node: a private file, written whole or not at all, one writer at a time. */

import { createHash } from "node:crypto";
import { constants, promises as fs } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { StateError, must } from "./errors.js";
import { turns } from "./storage.js";

export * from "./index.js";

const PATIENCE = 10_000;
const PAUSE = 20;
const LARGEST = 1 << 28;
// libuv's flag for an exclusive lock that the system releases, where it has one.
const EXCLUSIVE = { darwin: 0x20 | constants.O_NONBLOCK, win32: 0x10000000 }[process.platform];

/** Keeps a state in a file of its own, which only its owner can read. The folder must exist. */
export function fileStorage(file) {
  must(typeof file === "string" && file, "file must be a path, as text");
  const turn = turns();
  return {
    read: async () => readText(await target(file)),
    change: (next) =>
      turn(async () => {
        const where = await target(file);
        const release = await locked(where);
        try {
          const made = await next(await readText(where));
          if (made === null) await removed(where);
          else if (made !== undefined) await written(where, made);
        } finally {
          await release();
        }
      }),
  };
}

/** The file itself, behind symbolic links: it is what is locked and replaced. */
async function target(file) {
  try {
    return await fs.realpath(file);
  } catch (error) {
    if (error.code !== "ENOENT") throw unusable("readable", file, error);
  }
  try {
    return path.join(await fs.realpath(path.dirname(file)), path.basename(file));
  } catch (error) {
    throw unusable("writable", file, error);
  }
}

async function readText(file) {
  let handle;
  try {
    // A pipe in place of a file must not hang whoever opens it.
    handle = await fs.open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const stats = await handle.stat();
    if (!stats.isFile()) throw new StateError(`state must be a regular file at '${file}'; check the path`);
    if (stats.size > LARGEST) throw new StateError(`state must have at most 256 MiB at '${file}'; check the path`);
    return await handle.readFile("utf8");
  } catch (error) {
    if (error.code === "ENOENT") return null;
    throw error instanceof StateError ? error : unusable("readable", file, error);
  } finally {
    await handle?.close();
  }
}

// One name: whatever a killed process has left there is overwritten, or removed with the state.
const draft = (file) => `${file}.new`;

async function written(file, text) {
  const temporary = draft(file);
  try {
    await fs.rm(temporary, { force: true });
    const handle = await fs.open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await fs.rename(temporary, file);
    await synced(path.dirname(file));
  } catch (error) {
    await fs.rm(temporary, { force: true }).catch(() => {});
    throw unusable("writable", file, error);
  }
}

async function removed(file) {
  try {
    await fs.rm(draft(file), { force: true });
    await fs.rm(file, { force: true });
    await synced(path.dirname(file));
  } catch (error) {
    throw unusable("removable", file, error);
  }
}

/** Make a rename durable, where the platform lets a folder be synced. */
async function synced(folder) {
  if (process.platform === "win32") return;
  const handle = await fs.open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Wait for the file, and keep others away until `release` is called or this process dies. */
async function locked(file) {
  const deadline = Date.now() + PATIENCE;
  for (;;) {
    const release = await (EXCLUSIVE === undefined ? socketLock(file) : fileLock(file));
    if (release !== null) return release;
    if (Date.now() > deadline) {
      throw new StateError("state must be used by one process at a time, another has it; wait for that");
    }
    await new Promise((done) => setTimeout(done, PAUSE));
  }
}

/** Linux: a name that lives as long as the process does. Null if another has it. */
function socketLock(file) {
  const name = createHash("sha256").update(file).digest("hex");
  return new Promise((done, fail) => {
    const server = createServer((socket) => socket.destroy());
    server.on("error", (error) => (error.code === "EADDRINUSE" ? done(null) : fail(error)));
    server.listen({ path: `\0loloha-${name}`, exclusive: true }, () => {
      done(() => new Promise((closed) => server.close(closed)));
    });
  });
}

/** macOS and Windows: a lock that the system ties to the open file. Null if another has it. */
async function fileLock(file) {
  try {
    const handle = await fs.open(`${file}.lock`, constants.O_RDWR | constants.O_CREAT | EXCLUSIVE, 0o600);
    return () => handle.close();
  } catch (error) {
    if (["EAGAIN", "EBUSY", "EWOULDBLOCK"].includes(error.code)) return null;
    throw unusable("lockable", file, error);
  }
}

const unusable = (what, file, error) =>
  new StateError(`state must be ${what} at '${file}': ${error.code ?? error.name}; nothing was changed`);
