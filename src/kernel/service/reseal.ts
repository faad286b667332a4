/** After ROLLCALL_SECRET was changed: values that nobody opens are sealed under the current secret, a slice a call. */
import type { Resealed, UnopenedValue } from "../../contract/reseal.ts";
import { type SealedValue, sealsBehind } from "../db/seals.ts";
import { idsOf, logError } from "../kit/log.ts";
import { sealAnew } from "../kit/sealed-values.ts";
import { sealContext, sealKeyIds, unseal } from "../kit/secrets.ts";

/** Each value is a write, and an invocation has 1,000 calls to the outside. */
const SLICE = 100;

/**
 * Looks at the next `slice` values of anybody that are not sealed under the current secret, from behind `after` on, and
 * seals those anew that open.
 */
export async function reseal(env: Env, after: string | null, slice: number = SLICE): Promise<Resealed> {
  const [current, ...before] = sealKeyIds(env);
  const { values, next, ...counts } = await sealsBehind(env.DB, { current, before, after, limit: slice });
  const unopened: UnopenedValue[] = [];
  for (const value of values) {
    const text = await opened(env, value);
    if (text === null) unopened.push(unopenedOf(value, [current, ...before]));
    else await sealAnew(env, value, text);
  }
  const resealed = values.length - unopened.length;
  return { object: "reseal", resealed, unopened, ...counts, remaining: counts.remaining - resealed, next };
}

/** Null for one that does not open. */
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
