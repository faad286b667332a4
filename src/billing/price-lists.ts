/** The prices in force. Each isolate reads current and future lists once a minute, so a list applies at its time. */
import type { BillingMode, PriceList } from "../contract/money.ts";
import type { PinnedPrices } from "../contract/run-spec.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { placeOf } from "../kernel/kit/address.ts";
import { TtlCache } from "../kernel/kit/caches.ts";
import type { Priced } from "../kernel/run/charges.ts";
import { listAt } from "./charge.ts";
import { offered } from "./offered.ts";
import { pricesFrom } from "./queries/price-lists.ts";

const KEPT_MS = 60_000;
const ALL = "all";
const lists = new TtlCache<readonly PriceList[]>(KEPT_MS);

/** Drops the cached lists after a new one was added: the next run that this isolate creates uses the new one. */
export function forgetPrices(): void {
  lists.forget(ALL);
}

async function listInForce(env: Env, now: number): Promise<PriceList> {
  const known = await lists.get(ALL, now, () => pricesFrom(databaseOf(env), Math.floor(now / 1000)));
  const list = listAt(known, now);
  if (list === null) throw new Error("no price list is in force");
  return list;
}

/** The prices for a run that is created now; null if its organisation is not charged. */
export async function pricesOf(
  env: Env,
  billing: BillingMode,
  { policy, judges }: Priced,
  now: number,
): Promise<PinnedPrices | null> {
  if (billing === "off") return null;
  const list = await listInForce(env, now);
  const { version, fees } = list;
  const asked = Object.entries(judges).flatMap(([name, at]) => {
    const tokens = offered(list, at);
    return tokens === null ? [] : [[name, tokens] as const];
  });
  const { base_url = null, model = "" } = policy ?? {};
  const sold = base_url === null ? null : offered(list, { base_url, model });
  return { version, fees, policy: sold, judges: Object.fromEntries(asked) };
}

export async function offersAt(env: Env, base_url: string, now: number): Promise<boolean> {
  const { models } = await listInForce(env, now);
  return models.some((one) => placeOf(one.base_url) === placeOf(base_url));
}
