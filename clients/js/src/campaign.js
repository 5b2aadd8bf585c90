/** What devices and collector agree on: protocol, labelled domain and schedule, known by its hash. */

import * as check from "./check.js";
import { domain } from "./domain.js";
import { CampaignError, DomainError } from "./errors.js";
import { canonical } from "./json.js";
import { sha256 } from "./number.js";
import { Protocol } from "./protocol.js";

const TYPE = "loloha-campaign";
const VERSION = 1;
const LAST_START = Date.UTC(9000, 0, 1) / 1000;
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/** One measurement: immutable. Make it with `Campaign.read`. */
export class Campaign {
  constructor(document) {
    const required = ["type", "version", "name", "protocol", "labels", "round", "keys"];
    if (!check.isObject(document) || document.type !== TYPE || document.version !== VERSION) {
      throw new CampaignError(
        `campaign must be of type '${TYPE}', version ${VERSION}; use a matching release of loloha`,
      );
    }
    check.members("campaign", document, required, ["other"]);
    this.name = check.text("name", document.name);
    this.protocol = new Protocol(document.protocol);
    this.domain = domain(document.labels, document.other);
    this.schedule = schedule(document.round);
    this.keys = check.choice("keys", document.keys, ["assigned", "drawn"]);
    if (this.domain.k !== this.protocol.k) {
      throw new CampaignError("protocol must have as many values as there are labels; correct it");
    }
    if (this.keys === "assigned" && !(this.protocol.longitudinal && this.protocol.encoding.keyBytes)) {
      throw new CampaignError("keys must be 'drawn' where users keep none; correct it");
    }
    /** The document, ready for canonical JSON. */
    this.plain = { ...document, protocol: this.protocol.plain(), labels: this.domain.plain };
  }

  /**
   * Read a canonical document, and refuse any but the one that was pinned.
   *
   * @param {string} text as the collector sends it
   * @param {string} [fingerprint] SHA-256 that it must have
   */
  static async read(text, fingerprint) {
    let document;
    try {
      document = JSON.parse(text);
    } catch {
      throw new CampaignError("campaign must be JSON; export it again");
    }
    const campaign = await Campaign.restore(document, fingerprint);
    // Members twice, 1.0 for 1 and their like are other bytes: no two readers may differ on them.
    if (text !== canonical(campaign.plain)) {
      throw new CampaignError("campaign must be in its canonical form; export it again");
    }
    return campaign;
  }

  /** The campaign of a document that is parsed already. */
  static async restore(document, fingerprint) {
    let campaign;
    try {
      campaign = new Campaign(document);
    } catch (error) {
      throw error instanceof CampaignError ? error : new CampaignError(error.message);
    }
    campaign.fingerprint = await sha256(canonical(campaign.plain));
    if (fingerprint !== undefined && fingerprint !== campaign.fingerprint) {
      throw new CampaignError(
        `campaign must have the fingerprint ${fingerprint} that was agreed on, it has another; ` +
          "its rules changed, enrol again only if the user agrees",
      );
    }
    return Object.freeze(campaign);
  }

  /** Index 0..k-1 of a user's value: a label, or a number of the range. */
  index(value) {
    const index = this.domain.index(value);
    if (index !== undefined) return index;
    if (this.domain.other !== undefined) return this.domain.k - 1;
    throw new DomainError(
      "value must be one of the campaign's labels, or within its range, got another (not shown: " +
        "it is private); send nothing",
    );
  }

  /** A text for each value. */
  get labels() {
    return Array.from({ length: this.domain.k }, (_, v) => this.domain.text(v));
  }

  /** Number of the round that holds a moment in Unix seconds; negative before the start. */
  roundAt(moment) {
    const { start, seconds } = this.schedule;
    return Math.floor((Math.floor(moment) - start) / seconds);
  }
}

function schedule(round) {
  check.members("round", round, ["start", "seconds"]);
  const start = MOMENT.test(round.start) ? Date.parse(round.start) / 1000 : NaN;
  // Some readers take 30 February for 2 March.
  if (start && new Date(1000 * start).toISOString() !== round.start.replace("Z", ".000Z")) {
    throw new CampaignError("start must be a day of the calendar; correct it");
  }
  check.integer("start", start, 0, LAST_START);
  check.integer("seconds", round.seconds, 1, 366 * 86400);
  return { start, seconds: round.seconds };
}
