/** The wish of a user that nothing is reported: of a browser, or of the environment that a program runs in. */

import { tried } from "./check.js";

/** Why nothing is sent then. */
export const SILENCED = "DO_NOT_TRACK is set, so nothing is sent";

/** Whether the environment says so (consoledonottrack.com), as in Python: nothing is drawn or sent. */
export const isSilenced = () => !/^\s*(0|false)?\s*$/i.test(tried(() => globalThis.process.env.DO_NOT_TRACK) ?? "");

/** Whether that does, or the browser by Global Privacy Control or Do Not Track: no consent is asked for. */
export function isOptedOut() {
  const { globalPrivacyControl, doNotTrack } = globalThis.navigator ?? {};
  return globalPrivacyControl === true || doNotTrack === "1" || isSilenced();
}
