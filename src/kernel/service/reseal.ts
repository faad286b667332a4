/** Seals values again under the current secret after ROLLCALL_SECRET was changed, one slice for each call. */
import type { Resealed, UnopenedValue } from "../../contract/reseal.ts";
import { databaseOf } from "../db/database.ts";
import { type SealedValue, sealsBehind } from "../db/seals.ts";
import { idsOf, logError } from "../kit/log.ts";
import { sealAnew } from "../kit/sealed-values.ts";
import { sealContext, sealKeyIds, unseal } from "../kit/secrets.ts";

/** Each value is a write, and an invocation may make 1,000 outgoing calls. */
const SLICE = 100;

/**
 * Takes the next `slice` values of all organisations after `after` that are not sealed under the current secret, and
 * seals those again that can be opened.
 */
export async function reseal(env: Env, after: string | null, slice: number = SLICE): Promise<Resealed> {
  const [current, ...before] = sealKeyIds(env);
  const { values, next, ...counts } = await sealsBehind(databaseOf(env), { current, before, after, limit: slice });
  const unopened: UnopenedValue[] = [];
  for (const value of values) {
    const text = await opened(env, value);
    if (text === null) unopened.push(unopenedOf(value, [current, ...before]));
    else await sealAnew(env, value, text);
  }
  const resealed = values.length - unopened.length;
  return { object: "reseal", resealed, unopened, ...counts, remaining: counts.remaining - resealed, next };
}

/** Null if the value cannot be opened. */
async function opened(env: Env, value: SealedValue): Promise<string | null> {
  try {
    return await unseal(env, value.sealed, sealContext(value.scope, value.id));
  } catch (thrown) {
    logError("value not sealed anew", { ...idsOf(value), secret_id: value.id }, thrown);
    return null;
  }
}

function unopenedOf({ kind, id, scope, sealed }: SealedValue, held: readonly string[]): UnopenedValue {
  const isHeld = held.some((keyId) => sealed.startsWith(`${keyId}.`));
  const of = { organization_id: scope.orgId, project_id: scope.projectId };
  return { kind, id, ...of, reason: isHeld ? "damaged" : "unknown_key" };
}
