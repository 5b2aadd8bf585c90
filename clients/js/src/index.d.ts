/** A device of loloha: reports that are private before they leave it. */

export * from "./core.js";
import type { Campaign, ResetOptions, Value } from "./core.js";

/** Where a state is kept. */
export interface Storage {
  read(): Promise<string | null>;
  /** Store what `next` gives, whole or not at all: a text, null to delete, undefined for no change. */
  change(next: (text: string | null) => Promise<string | null | undefined>): Promise<void>;
}

export declare function memoryStorage(text?: string | null): Storage;
export declare function indexedDbStorage(name?: string): Storage;

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
  answered: number[];
  waiting: number[];
}

export interface Status {
  consent: boolean;
  /** Everything that was spent with this storage, by all campaigns together. */
  loss: number;
  limit: number | null;
  campaigns: CampaignStatus[];
  /** Those of the first campaign. */
  campaign: Campaign | null;
  answered: number[];
  waiting: number[];
}

export interface AgreeOptions extends ResetOptions {
  /** Of all campaigns, or one for each address that has one. */
  token?: string | Readonly<Record<string, string>> | null;
  /** Hard limit on `loss`. */
  limit?: number | null;
}

export interface Delivery {
  sent: number[];
  refused: Record<number, string>;
  waiting: number[];
  reason: string;
}

/** The reports of one user, for one campaign or several under one agreement, in one storage. */
export declare class Sender {
  constructor(storage: Storage, options?: SenderOptions);
  status(): Promise<Status>;
  agree(url: string | string[], options?: AgreeOptions): Promise<Campaign>;
  withdraw(): Promise<string>;
  /** The round; null if the limit is reached. */
  report(value: Value, options?: { round?: number }): Promise<number | null>;
  reportAll(
    values: Record<string, Value>,
    options?: { round?: number },
  ): Promise<Record<string, number | null>>;
  deliver(): Promise<Delivery>;
  deliverAll(): Promise<Record<string, Delivery>>;
  /** Send the queue when the page goes away; returns what ends that. */
  deliverOnHide(page?: typeof globalThis): () => void;
  reset(options?: ResetOptions): Promise<string>;
}
