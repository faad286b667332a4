/** Lists of prices. The one a deployment begins with is code; each stored one takes the place of another at its time. */
import { asc, desc, gt, lte } from "drizzle-orm";
import type { PriceList } from "../contract/money.ts";
import { DEFAULT_PRICES } from "../core/billing/default-prices.ts";
import { type PriceListRow, priceLists } from "./schema.ts";
import { unscoped } from "./scoped.ts";

/** The list in force at `now` (epoch seconds), and behind it those that are to come, the next one first. */
export async function pricesFrom(database: D1Database, now: number): Promise<[PriceList, ...PriceList[]]> {
  const all = unscoped(database, "prices");
  const [begun, coming] = await all.batch([
    all
      .select()
      .from(priceLists)
      .where(lte(priceLists.effective_from, now))
      .orderBy(desc(priceLists.effective_from), desc(priceLists.created_at))
      .limit(1),
    all
      .select()
      .from(priceLists)
      .where(gt(priceLists.effective_from, now))
      .orderBy(asc(priceLists.effective_from), asc(priceLists.created_at))
      .limit(100),
  ]);
  const [current] = begun;
  return [current === undefined ? DEFAULT_PRICES : priceListOf(current), ...coming.map(priceListOf)];
}

function priceListOf({ version, effective_from, prices }: PriceListRow): PriceList {
  const { fees, models } = prices;
  return { object: "price_list", version, effective_from, fees, models };
}
