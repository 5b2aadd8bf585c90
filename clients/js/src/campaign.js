/** What devices and collector agree on: protocol, labelled domain and schedule, known by its hash. */

import { choice, integer, isInteger, members, optional, real, text, tried } from "./check.js";
import { domain } from "./domain.js";
import { CampaignError, DomainError, must } from "./errors.js";
import { canonical } from "./json.js";
import { sha256 } from "./number.js";
import { Protocol } from "./protocol.js";

// The beginning of the year 9000.
const LAST_START = 221_845_392_000;

/** In Unix seconds. */
function moment(name, value) {
  const start = Date.parse(value) / 1000;
  // Some readers take 30 February for 2 March.
  const holds = isInteger(start, LAST_START) && new Date(value).toJSON().replace(".000", "") === value;
  must(holds, `${name} must be a date and time in UTC, in whole seconds`);
  return start;
}

const ROUND = {
  start: moment,
  seconds: integer(1, 366 * 86400),
  every: (name, value, all) => (name in all ? integer(2, 2 ** 24)(name, value) : 1),
  expires(name, value, all) {
    const end = name in all ? moment(name, value) : undefined;
    must(!(end <= moment("start", all.start)), "expires must be after the start");
    return end;
  },
};

const DOCUMENT = {
  type: choice("loloha-campaign"),
  version: choice(1),
  name: text,
  protocol: (name, spec) => new Protocol(spec),
  other: optional(text),
  labels: domain,
  round: (name, round) => members(round, ROUND),
  keys: choice("assigned", "drawn"),
};

/** One measurement: immutable. Make it with `Campaign.read`. */
export class Campaign {
  constructor(document) {
    const { labels, round: schedule, ...others } = members(document, DOCUMENT);
    /** `plain` is the document. */
    Object.assign(this, others, { domain: labels, schedule, plain: document });
    const { protocol, keys } = this;
    must(labels.k === protocol.k, "labels must be k, one for each value of the protocol");
    must(keys === "drawn" || (protocol.longitudinal && protocol.encoding.width), "keys must be drawn where the protocol keeps none");
  }

  /**
   * Read a canonical document, and refuse any but the one that was pinned.
   *
   * @param {string} text as the collector sends it
   * @param {string} [fingerprint] SHA-256 that it must have
   */
  static async read(text, fingerprint) {
    const campaign = await Campaign.restore(tried(JSON.parse, text), fingerprint);
    // Members twice, 1.0 for 1 and their like are other bytes: no two readers may differ on them.
    must(
      text === canonical(campaign.plain),
      "campaign must be canonical; fetch it again",
      CampaignError,
    );
    return campaign;
  }

  /** The campaign of a document that is parsed already. */
  static async restore(document, fingerprint) {
    let campaign;
    try {
      campaign = new Campaign(document);
    } catch (error) {
      throw new CampaignError(`${error.message}; export it again`);
    }
    const digest = await sha256(canonical(document));
    must(
      [undefined, digest].includes(fingerprint),
      "campaign must have the fingerprint of its address; ask for the right one",
      CampaignError,
    );
    campaign.fingerprint = digest;
    return Object.freeze(campaign);
  }

  /** Index 0..k-1 of a user's value: a label, or a number of the range. */
  index(value) {
    const { k, wanted, indexOfValue } = this.domain;
    const index = indexOfValue(value) ?? (this.other ? k - 1 : undefined);
    must(index !== undefined, `value must be ${wanted} (not shown)`, DomainError);
    return index;
  }

  /** A text for each value. */
  get labels() {
    const { k, labelOf } = this.domain;
    return [...Array(k).keys()].map(labelOf);
  }

  /** Whether its end date leaves a round, and the moment that `now` gives in Unix seconds, to be answered. */
  takes(round, now) {
    const { start, seconds, expires } = this.schedule;
    return !expires || (now() < expires && start + round * seconds < expires);
  }

  /** Number of the round that holds a moment in Unix seconds; negative before the start. */
  roundAt(moment) {
    const { start, seconds } = this.schedule;
    real(-1e15, 1e15)("moment", moment);
    return Math.floor((Math.floor(moment) - start) / seconds);
  }
}
