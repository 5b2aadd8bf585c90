/** A device of loloha: reports that are private before they leave it. */

export * from "./core.js";
import type { Campaign, ResetOptions, Value } from "./core.js";

/** Where a state is stored. */
export interface Storage {
  read(): Promise<string | null>;
  /** Store what `next` gives, whole or not at all: a text, null to delete, undefined for no change. */
  change(next: (text: string | null) => Promise<string | null | undefined>): Promise<void>;
  /** Nobody changes it between the calls of `began` and of `ended`, or of what this gives, which ends it. */
  hold?(began: () => void, ended: () => void): () => void;
}

export declare function memoryStorage(text?: string | null): Storage;
export declare function indexedDbStorage(
  name?: string,
  options?: {
    /** Seconds for one answer of the browser's storage; three times as long for another tab. */
    timeout?: number;
  },
): Storage;

export interface SenderOptions {
  /** Unix seconds. */
  clock?: () => number;
  attempts?: number;
  /** Seconds. */
  first?: number;
  longest?: number;
  timeout?: number;
  sleep?: (seconds: number) => Promise<void>;
  fetch?: typeof fetch;
}

/** One campaign of an agreement. */
export interface CampaignStatus {
  campaign: Campaign;
  loss: number;
  /** Rounds with a report, sent or not. */
  answered: number[];
  /** Rounds whose report waits to be sent. */
  waiting: number[];
}

export interface Status {
  consent: boolean;
  /** DO_NOT_TRACK is set, or the browser says so, by Global Privacy Control or Do Not Track: ask for no consent. */
  optedOut: boolean;
  /** Everything that was spent with this storage, by all campaigns together. */
  loss: number;
  limit: number | null;
  campaigns: CampaignStatus[];
}

export interface AgreeOptions extends ResetOptions {
  /** Of all campaigns, or one for each address that has one. */
  token?: string | Readonly<Record<string, string>> | null;
  /** Hard limit on `loss`; it must cover all that can ever be spent. Infinity takes one away. */
  limit?: number | null;
}

/** One report as it leaves, or an example of one. */
export interface Preview {
  campaign: Campaign;
  round: number;
  /** "example": of a client that was thrown away, for a value taken at random; it says nothing of the user. */
  kind: "queued" | "answered" | "example";
  /** The bytes. */
  message: string;
  /** The campaign's address, where the user has agreed; else empty. */
  url: string;
  /** Why nothing is drawn for this round as things are; empty otherwise. */
  reason: "" | "do-not-track" | "not-agreed" | "paused" | "ended" | "expired" | "not-due" | "limit" | "answered";
}

export interface Delivery {
  sent: number[];
  refused: Record<number, string>;
  waiting: number[];
  reason: string;
  /** "paused" or "ended" by the collector's answer: nothing is drawn, stored or sent any more. */
  campaign: "open" | "paused" | "ended";
}

/** The reports of one user, for one campaign or several under one agreement, in one storage. */
export declare class Sender {
  constructor(storage: Storage, options?: SenderOptions);
  status(): Promise<Status>;
  /** The first campaign; null, with nothing stored or sent, where `optedOut` and the user had not agreed before, or DO_NOT_TRACK is set. */
  agree(url: string | string[], options?: AgreeOptions): Promise<Campaign | null>;
  /** Have an opt-out counted, by one request that names nobody; false, with nothing sent, where `optedOut`. */
  decline(url: string, options?: { token?: string | null }): Promise<boolean>;
  withdraw(): Promise<string>;
  /** The round; null if it is none of this user's, of one in `every`, or the campaign is paused or has ended, or its end date has passed, or DO_NOT_TRACK is set. */
  report(value: Value, options?: { round?: number }): Promise<number | null>;
  reportAll(
    values: Record<string, Value>,
    options?: { round?: number },
  ): Promise<Record<string, number | null>>;
  /** The exact bytes of a report, or of an example; nothing is drawn, stored, sent or asked. */
  preview(campaign?: Campaign, options?: { round?: number }): Promise<Preview>;
  deliver(): Promise<Delivery>;
  deliverAll(): Promise<Record<string, Delivery>>;
  /** Send what waits when the page goes away, unless another tab deleted it; returns what ends that. Throws StateError where there is no page. */
  deliverOnHide(page?: typeof globalThis): () => void;
  reset(options?: ResetOptions): Promise<string>;
}
