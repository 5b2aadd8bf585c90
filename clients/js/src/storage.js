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

/**
 * Keeps a state in the browser's IndexedDB; one writer at a time across all tabs.
 *
 * @param {string} name one for each user and campaign
 */
export function indexedDbStorage(name = "loloha") {
  const { indexedDB, navigator } = globalThis;
  const isAble = indexedDB && navigator?.locks;
  must(isAble, "page must be https, with IndexedDB and locks", StateError);
  const place = `loloha ${name}`;

  /** Run one transaction, and wait until it is on the disk. */
  const transact = async (mode, act) => {
    try {
      const opening = indexedDB.open(place, 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
      const database = await settled(opening);
      const transaction = database.transaction(STORE, mode, { durability: "strict" });
      // It ends with the transaction.
      database.close();
      const request = act(transaction.objectStore(STORE));
      await settled(transaction);
      return request.result ?? null;
    } catch (error) {
      throw new StateError(`state must be within reach, got ${error?.name ?? "an error"}; nothing was changed`);
    }
  };

  return storage(
    (task) => navigator.locks.request(place, task),
    () => transact("readonly", (store) => store.get(STORE)),
    (made) =>
      transact("readwrite", (store) =>
        made === null ? store.delete(STORE) : store.put(made, STORE),
      ),
  );
}

/** What a request or a transaction comes to. */
const settled = (asked) =>
  new Promise((done, fail) => {
    asked.onsuccess = asked.oncomplete = () => done(asked.result);
    asked.onerror = asked.onabort = ({ target }) => fail(target.error);
  });
