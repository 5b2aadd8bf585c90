/** The random source of a device: two primitives, everything else is drawn through them. */

import { isInteger } from "./check.js";
import { must } from "./errors.js";
import { SCALE } from "./exact.js";

// The most that one call of getRandomValues gives.
const WORDS = 65536 / 4;

/** The platform's cryptographic source, drawn in blocks that are wiped as they are used. */
export class SecureRng {
  #pool = new Uint32Array(WORDS);
  #used = WORDS;

  /** True with probability exactly threshold / 2^53. */
  bernoulli(threshold) {
    if (!isInteger(threshold, SCALE)) must(false, "threshold must be an integer, out of 2^53");
    return this.#uniform() < threshold;
  }

  /** An integer uniform on 0..n-1, 1 <= n <= 2^53. */
  below(n) {
    must(isInteger(n, SCALE, 1) || n === SCALE, "n must be an integer from 1 to 2^53");
    // The last, incomplete run of n numbers is drawn again.
    const end = SCALE - (SCALE % n);
    let drawn;
    do drawn = this.#uniform();
    while (drawn >= end);
    return drawn % n;
  }

  #uniform() {
    if (this.#used === WORDS) {
      crypto.getRandomValues(this.#pool);
      this.#used = 0;
    }
    const pool = this.#pool;
    const at = this.#used;
    const drawn = (pool[at] >>> 11) * 2 ** 32 + pool[at + 1];
    pool[at] = pool[at + 1] = 0;
    this.#used = at + 2;
    return drawn;
  }
}
