/** Delivery of queued reports, oldest first, until an answer settles each. */

import { tried } from "./check.js";
import { SILENCED, isSilenced } from "./optout.js";
import { sameIn } from "./state.js";

/** So many answers in a row that settle nothing: what answers is no collector that works. */
const FRUITLESS = 3;
/** States of a campaign, at its collector, that has ended. */
const OVER = ["closed", "archived", "deleting", "deleted"];

/** The rounds whose reports wait. */
export const waitingIn = ({ queue = [] }) => queue.map(([round]) => round);

/** What a collector says of its campaign: "ended", or another state. */
export async function lifeOf(post, one) {
  const { status, text } = await post.ask(one.url, one);
  const state = status === 200 && tried(() => JSON.parse(text).state);
  return OVER.includes(state) ? "ended" : state;
}

/**
 * What sends a queue, see `Sender.deliver`; the state is free while a request is on its way.
 *
 * @param {object} parts
 * @param parts.store the state, see `stateStore`
 * @param parts.post what asks collectors
 * @param parts.goesOn whether the end date of a campaign has not passed
 */
export function courier({ store, post, goesOn }) {
  return async function deliver(enrolment) {
    const isSilent = isSilenced();
    const outcome = { sent: [], refused: {}, reason: isSilent ? SILENCED : "" };
    const isOver = !isSilent && !goesOn(enrolment.campaign);
    if (!isSilent) await (isOver ? drop : send)(enrolment, outcome);
    // Another tab may have another answer: the stored state decides.
    const now = sameIn(await store.read(), enrolment);
    outcome.waiting = waitingIn(now);
    outcome.campaign = isOver ? "ended" : (now.halted ?? "open");
    if (!outcome.waiting.length) outcome.reason = "";
    return outcome;
  };

  /** Drop what waits for a campaign whose end date has passed; that is not noted, a clock may be set right. */
  async function drop(enrolment, { refused }) {
    for (const round of await settle(store, [{ enrolment, isOver: true }])) refused[round] = "it has ended";
  }

  async function send(enrolment, outcome) {
    if (enrolment.halted === "paused") await askOn(enrolment);
    let fruitless = 0;
    for (const [round, message] of enrolment.queue) {
      const fate = await post.send(enrolment, message, async (request) => {
        // Begun while nobody can delete the report; the answer is not waited for meanwhile.
        const [begun] = await store.change((state) => [isQueued(state, enrolment, message) && request()]);
        return begun;
      });
      // Another page has settled it, or the user has withdrawn.
      if (!fate) continue;
      const { settled, isCounted, halted, detail, stop } = fate;
      if (settled) {
        const dropped = await settle(store, [{ enrolment, message, halted }]);
        if (isCounted) outcome.sent.push(round);
        else for (const one of [round, ...dropped]) outcome.refused[one] = detail;
        fruitless = 0;
      } else {
        // One report that settles nothing must not hold up the others for ever.
        outcome.reason ||= detail;
        fruitless += 1;
      }
      if (stop || halted || fruitless === FRUITLESS) break;
    }
  }

  /** Ask whether a paused campaign goes on, or has ended meanwhile; no answer changes nothing. */
  async function askOn(enrolment) {
    const life = await lifeOf(post, enrolment).catch(() => {});
    await store.change((state) => {
      const one = sameIn(state, enrolment);
      if (one.halted !== "paused") return;
      if (life === "open") delete one.halted;
      if (life === "ended") one.halted = life;
    });
  }
}

const isQueued = (state, enrolment, message) => sameIn(state, enrolment).queue?.some(([, one]) => one === message);

/**
 * Take reports off their queues that the collector has settled, and all that waits for a campaign that takes
 * no reports; where they are there no more, nothing is changed. Gives the rounds that are dropped so.
 */
export function settle(store, reports) {
  return store.change((state) => {
    const dropped = [];
    for (const { enrolment, message, halted, isOver } of reports) {
      // What a late answer says of a deleted report is older than all that waits now.
      if (!isOver && !isQueued(state, enrolment, message)) continue;
      const one = sameIn(state, enrolment);
      one.queue = one.queue?.filter(([, text]) => text !== message);
      // An end is final, even if a pause is reported later.
      if (!isOver && (!halted || one.halted === "ended")) continue;
      dropped.push(...waitingIn(one));
      one.queue = [];
      if (halted) one.halted = halted;
    }
    return dropped;
  });
}
