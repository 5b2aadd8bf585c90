/** What leaves when a page goes away: the queues that nobody has deleted meanwhile. */

import { tried } from "./check.js";
import { settle } from "./delivery.js";
import { isSilenced } from "./optout.js";

/** Reports in one request: as many as a collector takes. */
const MOST_TOGETHER = 100;
/** Bytes on their way by requests that outlive their page: browsers allow 64 KiB, headers included. */
const MOST_LEAVING = 48 * 1024;
const CAMPAIGN = /\/v1\/campaigns\/[^/]+$/;

/** Bytes on their way, of all senders of this page. */
let leaving = 0;

/**
 * The queues of one sender, as far as they may be sent without asking the storage again.
 *
 * A page that goes away may get no answer of a storage any more, and what it remembers may be deleted in
 * another tab. So it remembers queues only while it holds the state (see storage.js): nobody changes
 * anything then before this has forgotten it. Without that it asks the storage, and sends if there is
 * still time; if not, the queue is sent by whoever comes next.
 *
 * @param {object} parts
 * @param parts.storage where the state is
 * @param parts.store see `stateStore`
 * @param parts.post what asks collectors
 * @param parts.goesOn whether the end date of a campaign has not passed
 */
export function outbox({ storage, store, post, goesOn }) {
  /** The shared hold: it has no `state` until that is read. */
  let current;

  /** Hold the state, read it, and begin anew once somebody has changed it. */
  function open() {
    if (current || !storage.hold) return;
    const holding = {};
    current = holding;
    const began = async () => {
      holding.state = await store.read().catch(() => {});
    };
    const ended = () => {
      if (holding !== current) return;
      current = undefined;
      open();
    };
    holding.release = storage.hold(began, ended);
  }

  /** Forget, and let others change the state. */
  function close() {
    current?.release();
    current = undefined;
  }

  /** Send the queues, by requests that outlive the page, and close. */
  function leave() {
    const holding = current;
    close();
    if (holding?.state) send(holding.state);
    // Begun while nobody else changes the state, or not at all.
    else if (holding || !storage.hold) store.change(send).catch(() => {});
  }

  /** Send what waits, in one request for each collector and token. */
  function send({ enrolments }) {
    const groups = new Map();
    for (const enrolment of enrolments) {
      const { url, token, queue, campaign } = enrolment;
      // A clock that shows no time shows no end, and nothing is sent by it.
      if (isSilenced() || !tried(goesOn, campaign)) continue;
      const base = url.replace(CAMPAIGN, "");
      if (post.restOf(base) > 0) continue;
      const name = base + token;
      const group = groups.get(name) ?? { base, token, reports: [] };
      groups.set(name, group);
      group.reports.push(...queue.map(([, message]) => ({ enrolment, message })));
    }
    groups.forEach(sendGroup);
  }

  /** Send as many reports as may be on their way, the oldest ones first. */
  function sendGroup({ base, token, reports }) {
    const before = leaving;
    const some = reports.slice(0, MOST_TOGETHER).filter(({ message }) => {
      const after = leaving + message.length + 1;
      const fits = after < MOST_LEAVING;
      if (fits) leaving = after;
      return fits;
    });
    const size = leaving - before;
    if (!size) return;
    post
      .leave(base, token, some.map(({ message }) => message))
      .then((fates) => settle(store, some.map((one, i) => ({ ...one, ...fates[i] })).filter(({ settled }) => settled)))
      // What became of them is not known: they stay, and are sent again.
      .catch(() => {})
      .then(() => {
        leaving -= size;
      });
  }

  return { open, close, leave };
}
