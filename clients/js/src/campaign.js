/** What devices and collector agree on: protocol, labelled domain and schedule, known by its hash. */

import * as check from "./check.js";
import { domain } from "./domain.js";
import { CampaignError, DomainError, must } from "./errors.js";
import { canonical } from "./json.js";
import { sha256 } from "./number.js";
import { Protocol } from "./protocol.js";

const LAST_START = Date.UTC(9000, 0, 1) / 1000;
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/** One measurement: immutable. Make it with `Campaign.read`. */
export class Campaign {
  constructor(document) {
    const required = ["type", "version", "name", "protocol", "labels", "round", "keys"];
    check.release("campaign", document, "loloha-campaign", 1, CampaignError);
    check.members("campaign", document, required, ["other"]);
    this.name = check.text("name", document.name);
    this.protocol = new Protocol(document.protocol);
    this.domain = domain(document.labels, document.other);
    this.schedule = schedule(document.round);
    this.keys = check.choice("keys", document.keys, ["assigned", "drawn"]);
    const { k, longitudinal, encoding } = this.protocol;
    must(this.domain.k === k, CampaignError, "k must be the number of labels");
    const isKept = longitudinal && encoding.keyBytes;
    must(this.keys === "drawn" || isKept, CampaignError, "keys must be drawn where users keep none");
    /** The document. */
    this.plain = document;
  }

  /**
   * Read a canonical document, and refuse any but the one that was pinned.
   *
   * @param {string} text as the collector sends it
   * @param {string} [fingerprint] SHA-256 that it must have
   */
  static async read(text, fingerprint) {
    const document = check.tried(() => JSON.parse(text));
    const campaign = await Campaign.restore(document, fingerprint);
    // Members twice, 1.0 for 1 and their like are other bytes: no two readers may differ on them.
    must(text === canonical(document), CampaignError, "campaign must be canonical");
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
    campaign.fingerprint = await sha256(canonical(campaign.plain));
    must(
      fingerprint === undefined || fingerprint === campaign.fingerprint,
      CampaignError,
      "campaign must be the one agreed to; ask the user anew",
    );
    return Object.freeze(campaign);
  }

  /** Index 0..k-1 of a user's value: a label, or a number of the range. */
  index(value) {
    const index = this.domain.index(value);
    if (index !== undefined) return index;
    const { wanted, other } = this.domain;
    must(other !== undefined, DomainError, `value must be ${wanted} (not shown)`);
    return this.domain.k - 1;
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
  check.integer("start", start, 0, LAST_START);
  const written = new Date(1000 * start).toISOString();
  must(written === round.start.replace("Z", ".000Z"), CampaignError, "start must be a day of the calendar");
  check.integer("seconds", round.seconds, 1, 366 * 86400);
  return { start, seconds: round.seconds };
}
