/** Price lists. The first list of a deployment is code; each stored list replaces the previous one at its time. */
import { and, asc, count, desc, eq, exists, getTableColumns, gt, lte, ne, notExists, sql } from "drizzle-orm";
import { LIMITS } from "../../contract/limits.ts";
import type { PriceList } from "../../contract/money.ts";
import type { Database } from "../../kernel/db/database.ts";
import { type Remembered, rememberIf, violatedTable } from "../../kernel/db/idempotency-keys.ts";
import { inOrganization, unscoped } from "../../kernel/db/scoped.ts";
import { DEFAULT_PRICES } from "../default-prices.ts";
import { type PriceListRow, priceLists } from "../tables.ts";

/** The list in force at `now` (epoch seconds), followed by future lists, the next one first. */
export async function pricesFrom(database: Database, now: number): Promise<[PriceList, ...PriceList[]]> {
  const all = unscoped(database.main, "prices");
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
      .limit(LIMITS.comingPrices),
  ]);
  const [current] = begun;
  return [current === undefined ? DEFAULT_PRICES : priceListOf(current), ...coming.map(priceListOf)];
}

export async function findPriceList(database: Database, version: string): Promise<PriceList | null> {
  if (version === DEFAULT_PRICES.version) return DEFAULT_PRICES;
  const rows = await unscoped(database.main, "prices").select().from(priceLists).where(eq(priceLists.version, version));
  return rows[0] === undefined ? null : priceListOf(rows[0]);
}

/**
 * `taken`: the Idempotency-Key was already used; `version_taken`: the version exists; `time_taken`: another version
 * starts at that time; `full`: the maximum number of future lists is reached.
 */
export async function insertPriceList(
  database: Database,
  row: PriceListRow,
  /** `orgId`: the organisation of the operator who sends the request. */
  made: { readonly orgId: string; readonly remembered: Remembered | null },
): Promise<"inserted" | "full" | "taken" | "time_taken" | "version_taken"> {
  if (row.version === DEFAULT_PRICES.version) return "version_taken";
  const all = unscoped(database.main, "prices");
  const { version, effective_from, created_at, created_by } = row;
  const others = all
    .select({ version: priceLists.version })
    .from(priceLists)
    .where(and(eq(priceLists.effective_from, effective_from), ne(priceLists.version, version)));
  const coming = all
    .select({ n: count() })
    .from(priceLists)
    .where(gt(priceLists.effective_from, Math.floor(created_at / 1000)));
  // The inserting statement checks this itself: of two concurrent requests, the second sees the first.
  const values = Object.entries(getTableColumns(priceLists)).map(([name, column]) => {
    return sql`${sql.param(Reflect.get(row, name), column)}`;
  });
  const inserting = all
    .insert(priceLists)
    .select(
      sql`select ${sql.join(values, sql`, `)} where ${notExists(others)} and (${coming}) < ${LIMITS.comingPrices}`,
    )
    .returning();
  const own = and(eq(priceLists.version, version), eq(priceLists.created_at, created_at));
  const isMade = exists(
    all
      .select()
      .from(priceLists)
      .where(and(own, eq(priceLists.created_by, created_by))),
  );
  try {
    const [inserted, there] = await inOrganization(database, made.orgId).batch([
      inserting,
      others.limit(1),
      ...rememberIf(database, made.orgId, isMade, made.remembered),
    ]);
    if (inserted.length > 0) return "inserted";
    return there.length > 0 ? "time_taken" : "full";
  } catch (thrown) {
    const table = violatedTable(thrown);
    if (table === null) throw thrown;
    return table === "price_lists" ? "version_taken" : "taken";
  }
}

function priceListOf({ version, effective_from, prices }: PriceListRow): PriceList {
  const { fees, models } = prices;
  return { object: "price_list", version, effective_from, fees, models };
}
