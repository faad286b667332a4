/** Price lists: anyone with a key can read them, and an operator can add one. A list never changes. */
import type { Caller } from "../contract/identity.ts";
import { LIMITS } from "../contract/limits.ts";
import type { PriceList, PriceListRequest } from "../contract/money.ts";
import { ofOrganization } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { refusedUrl } from "../kernel/kit/address.ts";
import { type CreateOptions, replay, toRemember } from "../kernel/kit/idempotency.ts";
import { keyReused, type Result, refuse } from "../kernel/messages/refusal.ts";
import { isSameModel } from "./offered.ts";
import { forgetPrices } from "./price-lists.ts";
import { findPriceList, insertPriceList, pricesFrom } from "./queries/price-lists.ts";

const OPERATION = "createPriceList";
/** How far in the future prices may be set, in seconds: ten years. */
const FURTHEST_S = 10 * 366 * 86_400;

/** The list in force and future lists, or only the given version. `now`: epoch milliseconds. */
export async function readPrices(env: Env, version: string | null, now: number): Promise<Result<PriceList[]>> {
  if (version === null) return { ok: true, value: await pricesFrom(databaseOf(env), Math.floor(now / 1000)) };
  const found = await findPriceList(databaseOf(env), version);
  return found === null ? refuse("not_found", `no prices ${version}`, "version") : { ok: true, value: [found] };
}

export async function createPriceList(
  env: Env,
  caller: Caller,
  { version, effective_from: asked, fees, models }: PriceListRequest,
  options: CreateOptions,
): Promise<Result<{ value: PriceList; replayed: boolean }>> {
  const before = await findRepeated(env, caller, options);
  if (before !== null) return before;
  const { now } = options;
  const effective_from = asked ?? Math.floor(now / 1000);
  const when = refusedTime(effective_from, Math.floor(now / 1000));
  if (when !== null) return when;
  for (const [at, { base_url }] of models.entries()) {
    const refused = refusedUrl(env, null, base_url);
    if (refused !== null) return refuse("url_not_allowed", refused, `models.${at}.base_url`);
  }
  const twice = models.find((one, at) => models.findIndex((other) => isSameModel(one, other)) !== at);
  if (twice !== undefined) {
    return refuse("invalid_request", `models: contains ${twice.model} at ${twice.base_url} twice`, "models");
  }
  const row = { version, effective_from, prices: { fees, models }, created_at: now, created_by: caller.who };
  const made = { orgId: caller.orgId, remembered: toRemember(OPERATION, version, options) };
  const outcome = await insertPriceList(databaseOf(env), row, made);
  if (outcome === "taken") return (await findRepeated(env, caller, options)) ?? keyReused();
  // A concurrent copy of the same request may have created it.
  if (outcome === "time_taken") {
    const message = "another price list takes effect at that time: use another effective_from";
    return (await findRepeated(env, caller, options)) ?? refuse("conflict", message, "effective_from");
  }
  if (outcome === "version_taken") {
    const message = `prices ${version} already exist, and prices never change: use another version`;
    return (await findRepeated(env, caller, options)) ?? refuse("conflict", message, "version");
  }
  if (outcome === "full") {
    return refuse("conflict", `there are already ${LIMITS.comingPrices} future price lists, the maximum`, null);
  }
  forgetPrices();
  return {
    ok: true,
    value: { value: { object: "price_list", version, effective_from, fees, models }, replayed: false },
  };
}

function refusedTime(effective_from: number, now: number): Result<never> | null {
  const refused = (why: string) => refuse("invalid_request", `effective_from: ${why}`, "effective_from");
  if (effective_from < now) return refused("is in the past: leave it out for prices from now on");
  return effective_from > now + FURTHEST_S ? refused("is more than ten years ahead") : null;
}

async function findRepeated(env: Env, caller: Caller, options: CreateOptions) {
  const scope = ofOrganization(caller.orgId);
  const found = await replay(env, scope, OPERATION, options, (version) => findPriceList(databaseOf(env), version));
  if (found === null || !found.ok) return found;
  return { ok: true, value: { value: found.value, replayed: true } } as const;
}
