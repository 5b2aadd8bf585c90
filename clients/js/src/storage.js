/**
 * Where a state is kept. A storage has two methods:
 *
 *   read()        the text, or null
 *   change(next)  calls `await next(text)` while nobody else changes it, and stores what that gives,
 *                 durably and whole or not at all: a text, null to delete, undefined for no change
 */

import { StateError, must } from "./errors.js";

/** Keeps a state while the process lives: for tests, and where a user wants nothing kept. */
export function memoryStorage(text = null) {
  return storage(
    turns(),
    async () => text,
    async (made) => {
      text = made;
    },
  );
}

/** A storage of which `locked` runs one task at a time; `write` gets a text, or null to delete. */
export const storage = (locked, read, write) => ({
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

/**
 * Keeps a state in the browser's IndexedDB; one writer at a time across all tabs.
 *
 * @param {string} name one for each user and campaign
 */
export function indexedDbStorage(name = "loloha") {
  const { indexedDB, navigator } = globalThis;
  const isAble = indexedDB && navigator?.locks;
  must(isAble, StateError, "page must be https, with IndexedDB and Web Locks");
  const locked = (task) => navigator.locks.request(`loloha ${name}`, task);

  /** Run one transaction, and wait until it is on the disk. */
  const transact = async (mode, act) => {
    const database = await opened(indexedDB, `loloha ${name}`);
    try {
      const transaction = database.transaction("state", mode, { durability: "strict" });
      const request = act(transaction.objectStore("state"));
      await new Promise((done, fail) => {
        transaction.oncomplete = done;
        transaction.onabort = transaction.onerror = () => fail(transaction.error ?? request.error);
      });
      return request.result;
    } finally {
      database.close();
    }
  };

  const read = () =>
    transact("readonly", (store) => store.get("state")).then(
      (text) => text ?? null,
      (error) => unusable("readable", error),
    );

  const write = (made) =>
    transact("readwrite", (store) =>
      made === null ? store.delete("state") : store.put(made, "state"),
    ).catch((error) => unusable("writable", error));

  return storage(locked, read, write);
}

function opened(indexedDB, name) {
  return new Promise((done, fail) => {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore("state");
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });
}

function unusable(what, error) {
  throw new StateError(
    `state must be ${what}, got ${error?.name ?? "an error"}; nothing was changed`,
  );
}
