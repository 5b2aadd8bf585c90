/**
 * Where a state is stored. A storage has two methods, and may have a third:
 *
 *   read()              the text, or null
 *   change(next)        calls `await next(text)` while nobody else changes it, and stores what that gives,
 *                       durably and whole or not at all: a text, null to delete, undefined for no change
 *   hold(began, ended)  gives what ends it. Between the calls of `began` and of `ended`, or its end, nobody
 *                       changes anything: what was read since then may be acted on at once.
 */

import { given, real, tried } from "./check.js";
import { StateError, must } from "./errors.js";

/** Keeps a state while the process lives: for tests, and where a user wants nothing stored. */
export function memoryStorage(text = null) {
  must(text === null || typeof text === "string", "text must be what read gave, or null");
  const holders = new Set();
  const write = async (made) => {
    text = made;
    const all = [...holders];
    holders.clear();
    all.forEach((ended) => ended());
  };
  return {
    ...storage(turns(), async () => text, write),
    hold(began, ended) {
      holders.add(ended);
      began();
      return () => holders.delete(ended);
    },
  };
}

/** A storage of which `locked` runs one task at a time; `write` gets a text, or null to delete. */
const storage = (locked, read, write) => ({
  read,
  change: (next) =>
    locked(async () => {
      const made = await next(await read());
      if (made !== undefined) await write(made);
    }),
});

/** Runs one task after the other. */
export function turns() {
  let last = Promise.resolve();
  return (task) => {
    const mine = last.then(task);
    last = mine.catch(() => {});
    return mine;
  };
}

const STORE = "state";
/** Seconds between two calls to let go of a state. */
const CALL_AGAIN = 0.1;

/**
 * Keeps a state in the browser's IndexedDB; one writer at a time across all tabs and workers.
 *
 * @param {string} name one for each user and campaign
 * @param {object} [options]
 * @param {number} [options.timeout] seconds for one answer of the browser's storage; three times as long
 *   for one of another tab
 */
export function indexedDbStorage(name = "loloha", options) {
  const { timeout = 10 } = given("options", options);
  real(0, 1e6)("timeout", timeout);
  must(typeof name === "string", "name must be text");
  const { indexedDB, navigator } = globalThis;
  const isAble = indexedDB && navigator?.locks;
  must(
    isAble,
    "page must be served by https, in a browser with IndexedDB and Web Locks",
    StateError,
  );
  const place = `loloha ${name}`;

  /** Run one transaction, and wait until it is on the disk, but not for ever. */
  async function transact(mode, act) {
    let transaction;
    const late = AbortSignal.timeout(1000 * timeout);
    const run = async () => {
      const opening = indexedDB.open(place, 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
      const database = await settled(opening);
      // What comes after all must not be done any more: others may be at it by then.
      if (!late.aborted) transaction = database.transaction(STORE, mode, { durability: "strict" });
      // It ends with the transaction.
      database.close();
      const request = act(transaction.objectStore(STORE));
      await settled(transaction);
      return request.result ?? null;
    };
    const end = new Promise((_, fail) => {
      late.onabort = () => {
        fail(late.reason);
        // What is being committed cannot be taken back, and comes before whatever is asked next.
        tried(() => transaction.abort());
      };
    });
    return Promise.race([run(), end]);
  }

  /** Run a task alone, and wait for that as long as answers of another tab may take. */
  async function locked(task) {
    const calls = new BroadcastChannel(place);
    const call = () => calls.postMessage(STORE);
    // Again and again: who begins to hold just now may not hear the first one.
    const calling = setInterval(call, 1000 * CALL_AGAIN);
    const waiting = { signal: AbortSignal.timeout(3000 * timeout) };
    call();
    try {
      return await navigator.locks.request(place, waiting, task);
    } finally {
      clearInterval(calling);
      calls.close();
    }
  }

  const { read, change } = storage(
    locked,
    () => transact("readonly", (store) => store.get(STORE)),
    (made) =>
      transact("readwrite", (store) => (made === null ? store.delete(STORE) : store.put(made, STORE))),
  );
  return {
    read: () => read().catch(unreachable),
    change: (next) => change(next).catch(unreachable),
    hold(began, ended) {
      const calls = new BroadcastChannel(place);
      const waiting = new AbortController();
      const until = new Promise((done) => {
        waiting.signal.onabort = done;
      });
      const release = () => {
        calls.close();
        waiting.abort();
      };
      const begin = () => {
        calls.onmessage = () => {
          release();
          ended();
        };
        began();
        return until;
      };
      navigator.locks.request(place, { mode: "shared", signal: waiting.signal }, begin).catch(() => {});
      return release;
    },
  };
}

/** What a request or a transaction comes to. */
const settled = (asked) =>
  new Promise((done, fail) => {
    asked.onsuccess = asked.oncomplete = () => done(asked.result);
    asked.onerror = asked.onabort = ({ target }) => fail(target.error);
  });

/** What the browser says of its storage and locks, as an error of ours. */
function unreachable(error) {
  const isTheirs = error instanceof DOMException || !error;
  throw isTheirs ? new StateError(`state must be within reach of the browser, got ${error?.name}; close other tabs, try again`) : error;
}
