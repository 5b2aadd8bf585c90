/**
 * The state of a sender in its storage, step by step.
 *
 * No state is in memory alone: each step reads the state, computes the
 * next one, has it written, and only then tells or sends of it.
 */

import { StateError, must } from "./errors.js";
import { stateOf, textOf } from "./state.js";

/** What reads the state in a storage, and changes it. */
export function stateStore(storage) {
  /** The last text that was found to be sound, or made. */
  let known;

  async function of(text) {
    const state = await stateOf(text, text === known);
    known = text;
    return state;
  }

  return {
    read: async () => of(await storage.read()),

    /**
     * Take a step alone: compute the next state, have it written, and only then tell of it. `mend` is for one
     * that is damaged.
     */
    async change(step, mend) {
      let state;
      let result;
      await storage.change(async (text) => {
        state = await (mend ? of(text).catch(() => mend(text)) : of(text));
        result = await step(state);
        const made = (known = await textOf(state));
        return made === text ? undefined : made;
      });
      must(state, "storage must call what its change is given; see index.d.ts", StateError);
      return result;
    },
  };
}
