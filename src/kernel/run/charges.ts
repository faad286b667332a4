/**
 * What a slice that charges runs does inside them. It registers once, before anything is served (src/slices.ts). Without one
 * nothing is charged and nothing is told to any books; a run's cap then holds by the prices of its endpoints.
 */
import type { TokenPrices } from "../../contract/judgement.ts";
import type { BillingMode, ChargeLines } from "../../contract/money.ts";
import type { RunView } from "../../contract/run.ts";
import type { PinnedPrices } from "../../contract/run-spec.ts";
import type { PastRun } from "../../core/costs/expected.ts";
import type { TokensUsed } from "../../core/costs/run-costs.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { Result } from "../messages/refusal.ts";
import type { Ending, RolloutEntry } from "../messages/run-records.ts";
import type { RunSpec } from "../messages/wire.ts";
import type { RunHead } from "./schema.ts";
import type { RunStore } from "./store.ts";

/** Where tokens are used. */
export interface UsedAt {
  readonly base_url: string;
  readonly model: string;
}

/** Null: at no one address, and at none that the platform offers. */
type PolicyAt = { readonly base_url: string | null; readonly model: string; readonly prices: TokenPrices | null };

/** What of a run its prices depend on. */
export interface Priced {
  /** Null for a run that samples nothing. */
  readonly policy: PolicyAt | null;
  /** By the names of its judges. */
  readonly judges: Readonly<Record<string, UsedAt>>;
}

/** What an ending rollout took of its judges: each result, as the judge's endpoint counted it. */
export type JudgedTokens = TokensUsed & { readonly judge: string };

/** What one run tells the books of its organisation, and what it may count on. */
export interface RunAccount {
  /** Rollouts that may be dispatched for what is reserved. */
  room(spec: RunSpec): number;
  /** Why nothing more is dispatched; null where more can be. */
  flow(spec: RunSpec): RunView["flow"];
  /** There may be more money than there was. */
  changed(): void;
  /** True once the books have heard of everything, and nothing is reserved: then the run may be freed. */
  isSettled(spec: RunSpec): boolean;
  /** Epoch milliseconds of the next call; null while there is nothing to say. */
  nextAt(spec: RunSpec): number | null;
  /** Makes the call that is due; null when none is. Never throws. */
  advance(spec: RunSpec): Promise<void> | null;
}

export interface ChargeHooks {
  /** What the platform asks for a run that is created, to be pinned; null where its organisation is charged nothing. */
  pricesOf(env: Env, billing: BillingMode, priced: Priced, now: number): Promise<PinnedPrices | null>;
  /** Whether the platform itself offers models at an address. */
  offersAt(env: Env, base_url: string, now: number): Promise<boolean>;
  /** What the rollouts of a past run would be charged, in micro-dollars; null where that cannot be known. */
  expected(prices: PinnedPrices, past: PastRun, judges: readonly string[]): number | null;
  /** Reserves what the first rollouts of a run are expected to be charged. Null: it may begin; else why not. */
  reserveFirst(env: Env, spec: RunSpec, subrequests: Subrequests): Promise<Result<never> | null>;
  /** Gives back what was reserved for a run that is not to be. */
  releaseFirst(env: Env, spec: RunSpec, subrequests: Subrequests): Promise<void>;
  /** What a rollout is charged, in the transaction that ends it. `row`: with all that is known of it. */
  chargeOf(
    prices: PinnedPrices,
    spec: RunSpec,
    row: RolloutEntry,
    ending: Ending & { readonly judged: readonly JudgedTokens[] },
  ): ChargeLines;
  /** Micro-dollars of one batch that a trainer took. */
  pushMicros(prices: PinnedPrices): number;
  accountOf(env: Env, store: RunStore, now: () => number): RunAccount;
}

const NO_ACCOUNT: RunAccount = {
  room: () => Number.POSITIVE_INFINITY,
  flow: () => null,
  changed: () => undefined,
  isSettled: () => true,
  nextAt: () => null,
  advance: () => null,
};

const NOTHING_CHARGED: ChargeHooks = {
  pricesOf: async () => null,
  offersAt: async () => false,
  expected: () => 0,
  reserveFirst: async () => null,
  releaseFirst: async () => undefined,
  chargeOf: () => ({}),
  pushMicros: () => 0,
  accountOf: () => NO_ACCOUNT,
};

let registered = NOTHING_CHARGED;

/** Once, by the one slice that charges. */
export function registerCharges(hooks: ChargeHooks): void {
  registered = hooks;
}

export function charges(): ChargeHooks {
  return registered;
}

/** Micro-dollars that batches which its trainer took are charged. */
export function chargedForPushes({ money }: RunSpec, { books }: Pick<RunHead, "books">): number {
  const prices = money?.prices ?? null;
  return prices === null ? 0 : books.pushed * registered.pushMicros(prices);
}
