/** A device of loloha: reports that are private before they leave it. */

export type Key = number | bigint | number[] | null;
export type Answer = number | Uint8Array;
/** A label, or a number of a range. */
export type Value = string | number | bigint | boolean;

export interface Report {
  readonly key: Key;
  readonly y: Answer;
}

/** What draws come from; the default is the platform's cryptographic source. */
export interface Rng {
  /** True with probability exactly threshold / 2^53. */
  bernoulli(threshold: number): boolean;
  /** An integer uniform on 0..n-1. */
  below(n: number): number;
}

export declare class SecureRng implements Rng {
  bernoulli(threshold: number): boolean;
  below(n: number): number;
}

export declare class LolohaError extends Error {}
export declare class ParameterError extends LolohaError {}
export declare class CampaignError extends LolohaError {}
export declare class DomainError extends LolohaError {}
export declare class BudgetError extends LolohaError {}
export declare class StateError extends LolohaError {}
export declare class Unreachable extends LolohaError {}

/** Names of the thirteen protocols. */
export declare const PROTOCOLS: readonly string[];

/** Public rules of one protocol for one domain and one budget. */
export declare class Protocol {
  constructor(spec: Readonly<Record<string, string | number>>);
  readonly name: string;
  readonly spec: Readonly<Record<string, string | number>>;
  readonly k: number;
  readonly longitudinal: boolean;
  /** Bound on all reports of one value, for ever; for one-round rules on one report. */
  readonly loss: number;
  /** Most that a user can ever spend. */
  readonly cap: number;
  /** Thresholds out of 2^53. */
  readonly first: readonly number[];
  readonly second: readonly number[] | null;
  fingerprint(): Promise<string>;
}

/** One measurement: protocol, labelled domain and schedule, known by its fingerprint. */
export declare class Campaign {
  private constructor();
  /** Read a canonical document, and refuse any but the one that was pinned. */
  static read(text: string, fingerprint?: string): Promise<Campaign>;
  readonly name: string;
  readonly fingerprint: string;
  readonly protocol: Protocol;
  readonly keys: "assigned" | "drawn";
  readonly schedule: { readonly start: number; readonly seconds: number };
  /** A text for each value. */
  readonly labels: string[];
  /** Index 0..k-1 of a value. */
  index(value: Value): number;
  /** Number of the round that holds a moment in Unix seconds. */
  roundAt(moment: number): number;
}

/** How many answered rounds a client remembers. */
export declare const KEPT_ROUNDS: number;

export interface ClientOptions {
  key?: Key;
  limit?: number | null;
  rng?: Rng;
}

/** The secret state of one user. */
export declare class Client {
  constructor(protocol: Protocol, options?: ClientOptions);
  static load(text: string, options?: { protocol?: Protocol; rng?: Rng }): Promise<Client>;
  readonly protocol: Protocol;
  readonly loss: number;
  readonly cap: number;
  readonly limit: number | null;
  /** The sanitised report of a value 0..k-1; a round is answered once. */
  report(value: number, round: number): Report;
  /** Pseudonym for one round, 32 hexadecimal digits. */
  reporter(round: number): Promise<string>;
  setLimit(limit: number | null): void;
  /** Start as a new user; what was spent stays spent. Says what that costs. */
  reset(): string;
  /** The whole state, secrets included; Python's `Client.load` reads it too. */
  save(): Promise<string>;
}

/** The JSON message of one report. */
export declare function encode(
  campaign: Campaign,
  report: Report,
  options: { round: number; reporter: string; ticket?: string | null },
): string;

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

export interface Status {
  consent: boolean;
  campaign: Campaign | null;
  loss: number;
  limit: number | null;
  answered: number[];
  waiting: number[];
}

export interface Delivery {
  sent: number[];
  refused: Record<number, string>;
  waiting: number[];
  reason: string;
}

/** The reports of one user for one campaign, in one storage. */
export declare class Sender {
  constructor(storage: Storage, options?: SenderOptions);
  status(): Promise<Status>;
  agree(url: string, options?: { token?: string | null; limit?: number | null }): Promise<Campaign>;
  withdraw(): Promise<string>;
  report(value: Value, options?: { round?: number }): Promise<number>;
  deliver(): Promise<Delivery>;
  /** Send the queue when the page goes away; returns what ends that. */
  deliverOnHide(page?: typeof globalThis): () => void;
  reset(): Promise<string>;
}
