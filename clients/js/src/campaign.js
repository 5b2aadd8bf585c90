/** What devices and collector agree on: protocol, labelled domain and schedule, known by its hash. */

import * as check from "./check.js";
import { CampaignError, DomainError } from "./errors.js";
import { canonical, Float } from "./json.js";
import { sha256 } from "./number.js";
import { Protocol } from "./protocol.js";

const TYPE = "loloha-campaign";
const VERSION = 1;
const LARGEST = 2 ** 53;
const LAST_START = Date.UTC(9000, 0, 1) / 1000;
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
const DECIMAL = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d{1,4}))?$/i;

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
    return this.domain.texts();
  }

  /** Number of the round that holds a moment in Unix seconds; negative before the start. */
  roundAt(moment) {
    const { start, seconds } = this.schedule;
    return Math.floor((Math.floor(moment) - start) / seconds);
  }
}

function domain(labels, other) {
  const found = Array.isArray(labels) ? list(labels) : range(labels);
  if (other === undefined) return found;
  check.text("other", other);
  if (found.has(other)) throw new CampaignError("other must differ from the labels; drop one");
  return { ...found, k: found.k + 1, other, texts: () => [...found.texts(), other] };
}

/** A domain given by its labels. */
function list(labels) {
  const index = new Map();
  for (const [i, label] of labels.entries()) {
    if (!Number.isInteger(label) || Math.abs(label) > LARGEST) check.text("labels", label);
    index.set(String(label), i);
  }
  if (index.size < labels.length) {
    throw new CampaignError("labels must all be different, got one twice; list each once");
  }
  return {
    k: labels.length,
    plain: labels,
    has: (label) => index.has(label),
    texts: () => [...index.keys()],
    index: (value) => index.get(String(value)),
  };
}

/** A domain of equal parts of the numbers from low to high, in exact decimals. */
function range(labels) {
  check.members("labels", labels, ["range", "bins"]);
  const ends = labels.range;
  const bins = check.integer("bins", labels.bins, 1, 2 ** 24);
  if (!Array.isArray(ends) || ends.length !== 2) {
    throw new CampaignError("range must be [low, high]; correct it");
  }
  for (const end of ends) check.real("range", end, -LARGEST, LARGEST);
  if (!(ends[0] < ends[1])) throw new CampaignError("range must have low < high; swap or widen it");
  const [low, high] = ends.map((end) => decimal(String(end)));
  return {
    k: bins,
    plain: {
      bins,
      range: ends.map((end) => (Number.isInteger(end) ? end : new Float(end))),
    },
    has: () => false,
    texts: () => rangeTexts(low, high, bins),
    index(value) {
      const number = decimal(typeof value === "number" ? String(value) : value);
      if (number === null) return undefined;
      const [x, a, b] = aligned([number, low, high]);
      if (x < a || x > b) return undefined;
      return Math.min(bins - 1, Number(((x - a) * BigInt(bins)) / (b - a)));
    },
  };
}

function schedule(round) {
  check.members("round", round, ["start", "seconds"]);
  const start = MOMENT.test(round.start) ? Date.parse(round.start) / 1000 : NaN;
  check.integer("start", start, 0, LAST_START);
  check.integer("seconds", round.seconds, 1, 366 * 86400);
  return { start, seconds: round.seconds };
}

// -- exact decimals: pairs [integer, power of ten]

/** The decimal that a text stands for, null if it stands for none. */
function decimal(text) {
  const found = typeof text === "string" ? DECIMAL.exec(text.trim()) : null;
  if (!found || !(found[2] || found[3])) return null;
  const [, sign, whole, part, power] = found;
  return [BigInt(`${sign === "-" ? "-" : ""}${whole}${part}`), Number(power ?? 0) - part.length];
}

/** Integers that are to each other as the decimals are. */
function aligned(decimals) {
  const least = Math.min(...decimals.map(([, power]) => power));
  return decimals.map(([integer, power]) => integer * 10n ** BigInt(power - least));
}

function rangeTexts(low, high, bins) {
  throw new Error("not yet");
}
