/**
 * Posts what a project stores, and how many published environments it used on the day before, to its organisation's
 * ledger, once for each day (UTC). The daily reconciliation posts the current day and any missed days before it; all of
 * them use the bytes stored at that time.
 *
 * Invariant. A day is posted once, by its name: after a kill it is posted again, which changes nothing.
 */
import type { BillingMode } from "../contract/money.ts";
import type { Scope } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { storedIn } from "../kernel/db/stored-bytes.ts";
import { publishedVersionsUsed } from "../kernel/db/used-versions.ts";
import type { Days } from "../kernel/kit/slice-hooks.ts";
import type { Subrequests } from "../kernel/kit/subrequests.ts";
import { storageCharge } from "./charge.ts";
import { pricesFrom } from "./queries/price-lists.ts";
import type { Posting, UseCounts } from "./rpc.ts";
import { ledgerObject } from "./rpc.ts";

const DAY_MS = 24 * 3600_000;
/** The most days posted at once, including the current day. */
const MOST_DAYS = 31;

/** Posts the days after `last` up to `today`. Returns true while the project stores anything, or used an environment. */
export async function postStorage(
  env: Env,
  scope: Scope,
  { last, today }: Days,
  subrequests: Subrequests,
): Promise<boolean> {
  const first = Math.max(last + 1, today - MOST_DAYS + 1);
  const bytes = await subrequests.fetch(() => storedIn(databaseOf(env), scope));
  const used: number[] = [];
  for (let day = first; day <= today; day += 1) {
    const before = { start: (day - 1) * DAY_MS, end: day * DAY_MS };
    used.push(await subrequests.fetch(() => publishedVersionsUsed(databaseOf(env), scope, before)));
  }
  if (bytes === 0 && used.every((versions) => versions === 0)) return false;
  const { billing } = await subrequests.object(() => ledgerObject(env, scope.orgId).balance(scope.orgId));
  for (let day = first; day <= today; day += 1) {
    const use = { byte_days: bytes, isolate_days: used[day - first] ?? 0 };
    const posting = await postingOf(env, scope, { use, billing }, day, subrequests);
    await subrequests.object(() => ledgerObject(env, scope.orgId).post(posting));
  }
  return true;
}

async function postingOf(
  env: Env,
  { orgId, projectId }: Scope,
  {
    use,
    billing,
  }: { readonly use: Required<Pick<UseCounts, "byte_days" | "isolate_days">>; readonly billing: BillingMode },
  day: number,
  subrequests: Subrequests,
): Promise<Posting> {
  const [{ fees, version }] = await subrequests.fetch(() => pricesFrom(databaseOf(env), (day * DAY_MS) / 1000));
  const charged: Pick<Posting, "lines" | "price_version"> =
    billing === "off"
      ? { lines: {}, price_version: null }
      : { lines: storageCharge(fees, use.byte_days), price_version: version };
  return {
    ...{ orgId, kind: "storage", source_id: projectId, period: nameOf(day), project_id: projectId },
    ...{ amount_micros: 0, against: "revenue/storage", note: null, use },
    ...charged,
  };
}

/** `2026-11-23` */
function nameOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, "2026-11-23".length);
}
