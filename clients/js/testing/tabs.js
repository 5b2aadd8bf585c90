/** Tabs of one browser: a disk and locks that they share, of which each step waits to be told to go on. */

import { createHash, createHmac } from "node:crypto";
import { StateError } from "../src/index.js";

/** Numbers of a seed. */
export function numbers(seed) {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n) => Math.floor(next() * n);
  return { below, pick: (all) => all[below(all.length)], chance: (p) => next() < p };
}

/** Have digests made at once, and waits as long as ever: else nothing could be repeated. Gives what ends it. */
export function repeatable() {
  const { subtle } = crypto;
  const { random } = Math;
  const own = {
    digest: async (_, bytes) => createHash("sha256").update(bytes).digest(),
    importKey: async (_, bytes) => bytes,
    sign: async (_, key, bytes) => createHmac("sha256", key).update(bytes).digest(),
  };
  Object.assign(subtle, own);
  Math.random = () => 0.5;
  return () => {
    Math.random = random;
    // Those of the prototype are there again.
    for (const name of Object.keys(own)) delete subtle[name];
  };
}

/** Everything that is under way runs until it waits to be told. */
export const settle = () => new Promise(setImmediate);

/** The disk and the locks of a browser. */
export class Browser {
  text = null;
  #queue = [];
  #held = new Set();

  /** @param written is called with each text that is written, and the one before it */
  constructor(written) {
    this.written = written;
  }

  write(text) {
    const before = this.text;
    this.text = text;
    this.written(text, before);
  }

  /** Ask for the lock; `granted` is called, in its tab, once it is there. */
  request(tab, mode, granted) {
    const one = { tab, mode, granted };
    this.#queue.push(one);
    this.grant();
    return one;
  }

  release(one) {
    this.#queue = this.#queue.filter((other) => other !== one);
    this.#held.delete(one);
    this.grant();
  }

  /** First come, first served; holders are called to let go. */
  grant() {
    for (;;) {
      const [first] = this.#queue;
      const held = [...this.#held];
      const isFree = first && (first.mode === "shared" ? held.every(({ mode }) => mode === "shared") : !held.length);
      if (!isFree) break;
      this.#held.add(this.#queue.shift());
      first.tab.gate().then(first.granted);
    }
    if (this.#queue.some(({ mode }) => mode === "exclusive")) this.#held.forEach((one) => one.called?.());
  }

  /** One that waits for the lock waits no more. */
  late({ pick }) {
    const waiting = this.#queue.filter(({ refuse }) => refuse);
    if (!waiting.length) return;
    const one = pick(waiting);
    this.release(one);
    one.refuse(new StateError("state must be within reach"));
  }

  /** The browser takes from a page that is gone what it had. */
  forget(tab) {
    const own = ({ tab: other }) => other === tab;
    [...this.#queue, ...this.#held].filter(own).forEach((one) => this.release(one));
  }
}

/** One page. */
export class Tab {
  waiting = [];
  isFrozen = false;
  isOffline = false;

  constructor(browser) {
    this.browser = browser;
    this.page = new EventTarget();
    this.page.document = Object.assign(new EventTarget(), { visibilityState: "visible" });
  }

  /** Wait to be told. */
  gate = () => new Promise((go) => this.waiting.push(go));

  become(state) {
    this.page.document.visibilityState = state;
    this.page.document.dispatchEvent(new Event("visibilitychange"));
  }

  /** A storage as `indexedDbStorage` is one, to this tab. */
  storage() {
    const { browser, gate } = this;
    const read = async () => {
      await gate();
      const { text } = browser;
      await gate();
      return text;
    };
    const change = async (next) => {
      let lock;
      await new Promise((granted, refuse) => {
        lock = browser.request(this, "exclusive", granted);
        lock.refuse = refuse;
      });
      try {
        const made = await next(await read());
        if (made === undefined) return;
        await gate();
        browser.write(made);
        await gate();
      } finally {
        browser.release(lock);
      }
    };
    const hold = (began, ended) => {
      let isCalled = false;
      let isOver = false;
      const release = () => {
        isOver = true;
        browser.release(lock);
      };
      const lock = browser.request(this, "shared", () => {
        if (isOver) return;
        lock.called = () => {
          if (isCalled) return;
          isCalled = true;
          gate().then(() => {
            if (isOver) return;
            release();
            ended();
          });
        };
        began();
        browser.grant();
      });
      return release;
    };
    return { read, change, hold };
  }
}
