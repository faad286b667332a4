/**
 * The hooks of the slice that charges runs. It registers once, before anything is served (src/slices.ts). Without it
 * nothing is charged and nothing is written to a ledger; a run's cap then uses the prices of its endpoints.
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

/** The endpoint and model that use tokens. */
export interface UsedAt {
  readonly base_url: string;
  readonly model: string;
}

/** `base_url` null: several addresses, none of them offered by the platform. */
type PolicyAt = { readonly base_url: string | null; readonly model: string; readonly prices: TokenPrices | null };

/** The parts of a run that its prices depend on. */
export interface Priced {
  /** Null for a run that samples nothing. */
  readonly policy: PolicyAt | null;
  /** By the names of its judges. */
  readonly judges: Readonly<Record<string, UsedAt>>;
}

/** Tokens that judges used for an ending rollout, one entry per result, as the judge's endpoint counted them. */
export type JudgedTokens = TokensUsed & { readonly judge: string };

/** One run's connection to the ledger of its organisation: it reports charges and gets reservations. */
export interface RunAccount {
  /** How many rollouts may be dispatched with the money that is reserved. */
  remaining(spec: RunSpec): number;
  /** Why nothing more is dispatched; null where more can be. */
  statusReason(spec: RunSpec): RunView["status_reason"];
  /** More money may be available than before. */
  changed(): void;
  /** True if the ledger has everything and nothing is reserved: then the run may be freed. */
  isSettled(spec: RunSpec): boolean;
  /** Epoch milliseconds of the next call; null if there is nothing to report. */
  nextAt(spec: RunSpec): number | null;
  /** Makes the call that is due; null if none is due. Never throws. */
  advance(spec: RunSpec): Promise<void> | null;
}

export interface ChargeHooks {
  /** The platform's prices for a new run, to be pinned; null if its organisation is charged nothing. */
  pricesOf(env: Env, billing: BillingMode, priced: Priced, now: number): Promise<PinnedPrices | null>;
  /** True if the platform itself offers models at this address. */
  offersAt(env: Env, base_url: string, now: number): Promise<boolean>;
  /** What the rollouts of a past run would be charged, in micro-dollars; null if that cannot be computed. */
  expected(prices: PinnedPrices, past: PastRun, judges: readonly string[]): number | null;
  /** Reserves the expected charge of a run's first rollouts. Null: the run may begin; else the error. */
  reserveFirst(env: Env, spec: RunSpec, subrequests: Subrequests): Promise<Result<never> | null>;
  /** Releases the reservation of a run that is not created after all. */
  releaseFirst(env: Env, spec: RunSpec, subrequests: Subrequests): Promise<void>;
  /** What a rollout is charged, in the transaction that ends it. `row`: the row with all values known so far. */
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
  remaining: () => Number.POSITIVE_INFINITY,
  statusReason: () => null,
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

/** Called once, by the one slice that charges. */
export function registerCharges(hooks: ChargeHooks): void {
  registered = hooks;
}

export function charges(): ChargeHooks {
  return registered;
}

/** What the batches taken by the run's trainer are charged, in micro-dollars. */
export function chargedForPushes({ money }: RunSpec, { books: accounting }: Pick<RunHead, "books">): number {
  const prices = money?.prices ?? null;
  return prices === null ? 0 : accounting.pushed * registered.pushMicros(prices);
}
