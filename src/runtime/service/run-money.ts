/**
 * Who pays for a run, and what: pinned when it is created. The list of prices is read once a minute in each isolate, with
 * those that are to come, so a version begins at its time.
 */
import type { TokenPrices } from "../../contract/judgement.ts";
import type { PriceList } from "../../contract/money.ts";
import { type PinnedPrices, plannedAtFirst, type RunMoney, type RunSpec } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import { listAt } from "../../core/billing/charge.ts";
import { pricesFrom } from "../../db/price-lists.ts";
import type { Result } from "../contract/refusal.ts";
import { TtlCache } from "../kit/caches.ts";
import { booksObject } from "../kit/names.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import { estimateOf } from "../run/charging.ts";
import { NEW_HEAD } from "../run/schema.ts";
import { factsOf } from "../run/settling.ts";
import { limitsOf } from "./limits.ts";
import { offered } from "./offered.ts";

const KEPT_MS = 60_000;
const ALL = "all";
const lists = new TtlCache<readonly PriceList[]>(KEPT_MS);

/** Where tokens are used. */
interface UsedAt {
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

/** `payer`: `key_…`, `per_…`. `now`: epoch milliseconds. */
export async function moneyOf(
  env: Env,
  { orgId }: Scope,
  { policy, judges }: Priced,
  { payer, now }: { readonly payer: string; readonly now: number },
): Promise<RunMoney> {
  const { billing } = await limitsOf(env, orgId, now);
  const owner = { payer, policy: policy?.prices ?? null };
  if (billing === "off") return { ...owner, prices: null };
  const prices = pinned(await listInForce(env, now), { policy, judges });
  const asked = Object.entries(judges).map(([name, { base_url }]) => [name, base_url] as const);
  return { ...owner, prices, addresses: { policy: policy?.base_url ?? null, judges: Object.fromEntries(asked) } };
}

/** A list was added here: whoever creates a run in this isolate next is asked by it. */
export function forgetPrices(): void {
  lists.forget(ALL);
}

export async function listInForce(env: Env, now: number): Promise<PriceList> {
  const known = await lists.get(ALL, now, () => pricesFrom(env.DB, Math.floor(now / 1000)));
  const list = listAt(known, now);
  if (list === null) throw new Error("no list of prices is in force");
  return list;
}

function pinned(list: PriceList, { policy, judges }: Priced): PinnedPrices {
  const { version, fees } = list;
  const asked = Object.entries(judges).flatMap(([name, at]) => {
    const tokens = offered(list, at);
    return tokens === null ? [] : [[name, tokens] as const];
  });
  const { base_url = null, model = "" } = policy ?? {};
  const sold = base_url === null ? null : offered(list, { base_url, model });
  return { version, fees, policy: sold, judges: Object.fromEntries(asked) };
}

/**
 * Reserves what its first rollouts are expected to be charged. Null: it is reserved, or nothing is charged; else why the run
 * cannot begin. What is reserved ends by itself if the run never asks for more.
 */
export async function reserveFirst(env: Env, spec: RunSpec, subrequests: Subrequests): Promise<Result<never> | null> {
  const estimate = estimateOf(spec, NEW_HEAD);
  if (estimate === 0) return null;
  const planned = spec.training === undefined ? plannedAtFirst(spec) : spec.max_concurrent;
  const micros = estimate * Math.min(spec.max_concurrent, planned);
  const books = booksObject(env, spec.scope.orgId);
  const { short } = await subrequests.object(() => books.hold({ run: factsOf(spec), micros }));
  if (short === null) return null;
  const { by, budget_id, reason, shortfall_micros } = short;
  const code = by === "budget" ? "budget_exhausted" : "insufficient_balance";
  const details = { shortfall_micros, ...(budget_id !== null && { budget_id }) };
  return { ok: false, error: { code, message: reason, param: null, details } };
}

/** Gives back what was reserved for a run that is not to be. */
export async function releaseFirst(env: Env, spec: RunSpec, subrequests: Subrequests): Promise<void> {
  if ((spec.money?.prices ?? null) === null) return;
  const order = { run: factsOf(spec), items: {}, hold: 0 };
  await subrequests.object(() => booksObject(env, spec.scope.orgId).settle(order));
}
