/** What begins with a user's consent, or anew, and the limit that is agreed on. */

import { Client } from "./client.js";
import { bound, checkLimit } from "./limit.js";
import { sum } from "./number.js";

/** A new enrolment, which goes on in its panel and may leave out rounds that were answered. */
export function enrolled({ key, ...one }, known, wait, before) {
  const { protocol, fingerprint, schedule: { every } } = one.campaign;
  const answered = known[fingerprint];
  // It was answered itself, and is no gap that was closed.
  const last = answered?.at(-1)?.[1];
  // A window of a panel holds one report, whoever asks for another.
  const account = { residue: last && last % every, ...before, answered: wait || every > 1 ? answered : undefined };
  return { ...one, client: new Client(protocol, { key, account, every }), queue: [] };
}

/** Take a limit for all enrolments together, as the user asks. */
export function agreeTo(limit, state) {
  const clients = state.enrolments.map(({ client }) => client);
  // From here on what was spent stands for what is not known.
  const committed = state.committed || state.spent;
  checkLimit(limit, sum(clients.map(({ committedBefore }) => committedBefore), committed), clients.map(({ claim }) => claim));
  for (const client of clients) client.setLimit(null);
  Object.assign(state, { limit: bound(limit), committed });
}
