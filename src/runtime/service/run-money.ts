/** Who pays for a run, and what: pinned when it is created. What the platform asks, the slice that charges says. */
import type { PinnedPrices, RunMoney, RunSpec } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import type { PastRun } from "../../core/costs/expected.ts";
import type { Result } from "../contract/refusal.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import { charges, type Priced } from "../run/charges.ts";

/** `payer`: `key_…`, `per_…`. `now`: epoch milliseconds. */
export async function moneyOf(
  env: Env,
  { orgId }: Scope,
  { policy, judges }: Priced,
  { payer, now }: { readonly payer: string; readonly now: number },
): Promise<RunMoney> {
  const owner = { payer, policy: policy?.prices ?? null };
  const prices = await charges().pricesOf(env, orgId, { policy, judges }, now);
  if (prices === null) return { ...owner, prices };
  const asked = Object.entries(judges).map(([name, { base_url }]) => [name, base_url] as const);
  return { ...owner, prices, addresses: { policy: policy?.base_url ?? null, judges: Object.fromEntries(asked) } };
}

/** What the platform would charge for a run that has ended; null where that cannot be known. `judges`: by name. */
export function chargedMicros(prices: PinnedPrices, past: PastRun, judges: readonly string[]): number | null {
  return charges().expected(prices, past, judges);
}

/** Whether the platform itself offers models at this address. */
export function isOffered(env: Env, base_url: string, now: number): Promise<boolean> {
  return charges().offersAt(env, base_url, now);
}

/**
 * Reserves what its first rollouts are expected to be charged. Null: it is reserved, or nothing is charged; else why the run
 * cannot begin. What is reserved ends by itself if the run never asks for more.
 */
export function reserveFirst(env: Env, spec: RunSpec, subrequests: Subrequests): Promise<Result<never> | null> {
  return charges().reserveFirst(env, spec, subrequests);
}

/** Gives back what was reserved for a run that is not to be. */
export function releaseFirst(env: Env, spec: RunSpec, subrequests: Subrequests): Promise<void> {
  return charges().releaseFirst(env, spec, subrequests);
}
