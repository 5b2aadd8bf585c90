/** The pure half of a device: no network, no storage. */

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

/** Names of the fourteen protocols. */
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
  readonly schedule: { readonly start: number; readonly seconds: number; readonly every: number; readonly expires?: number };
  /** A text for each value. */
  readonly labels: string[];
  /** Index 0..k-1 of a value. */
  index(value: Value): number;
  /** Number of the round that holds a moment in Unix seconds. */
  roundAt(moment: number): number;
}

/** How many answered rounds a client remembers. */
export declare const KEPT_ROUNDS: number;

/** What was spent and committed, and which rounds were answered: intervals [first, last]. */
export interface Account {
  spent: number;
  answered: [number, number][];
  /** What a limit has to cover of it, whatever the values were; by default what was spent. */
  committed?: number;
  /** What the numbers of this user's rounds leave modulo `every`; undefined where it is 1. */
  residue?: number;
}

export interface ClientOptions {
  key?: Key;
  /** Hard limit on `loss`; it must cover the most that can ever be spent, of one-round rules a report. */
  limit?: number | null;
  rng?: Rng;
  /** Of the same user's earlier client. */
  account?: Account;
  /** In how many rounds it reports once: of the campaign's schedule. */
  every?: number;
}

export interface ResetOptions {
  /** Wait for rounds that were not answered yet, so that no round counts this user twice; true by default. */
  wait?: boolean;
}

/** The secret state of one user. */
export declare class Client {
  constructor(protocol: Protocol, options?: ClientOptions);
  static load(text: string, options?: { protocol?: Protocol; rng?: Rng }): Promise<Client>;
  readonly protocol: Protocol;
  readonly loss: number;
  readonly cap: number;
  readonly limit: number | null;
  readonly account: Account;
  /** What a limit has to cover so far, whatever the values were; NaN in a state of 0.2.0 that does not say it. */
  readonly committed: number;
  /** The newest rounds that were answered, in the order of answering. */
  readonly sentRounds: number[];
  /**
   * The sanitised report of a value 0..k-1; a round is answered once. A limit ends one-round rules after a
   * number of reports that depends on no value (BudgetError), and never another client that enrolled under it.
   */
  report(value: number, round: number): Report;
  /** Whether it reports in a round; `report` refuses others. */
  isDue(round: number): boolean;
  readonly every: number;
  hasAnswered(round: number): boolean;
  /** Pseudonym for one round, 32 hexadecimal digits. */
  reporter(round: number): Promise<string>;
  /** Replace the limit, as the user asks; null takes it away. */
  setLimit(limit: number | null): void;
  /** Start as a new user, if the limit covers one more; what was spent stays spent. Says what that costs. */
  reset(options?: ResetOptions): string;
  /** The whole state, secrets included; Python's `Client.load` reads it too. */
  save(): Promise<string>;
}

/** The JSON message of one report. */
export declare function encode(
  campaign: Campaign,
  report: Report,
  options: { round: number; reporter: string; ticket?: string | null },
): string;
