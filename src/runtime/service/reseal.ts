/** After ROLLCALL_SECRET was changed: values that nobody opens are sealed under the current secret, a slice a call. */
import type { Resealed } from "../../contract/reseal.ts";
import { sealsUnder } from "../../db/seals.ts";
import { idsOf, logError } from "../kit/log.ts";
import { sealAnew } from "../kit/sealed-values.ts";
import { sealContext, sealKeyIds, unseal } from "../kit/secrets.ts";

/** Each value is a write, and an invocation has 1,000 calls to the outside. */
const SLICE = 100;

/** Seals anew at most `slice` values of anybody that are sealed under a secret before the current one. */
export async function reseal(env: Env, slice: number = SLICE): Promise<Resealed> {
  const [current, ...before] = sealKeyIds(env);
  const { values, count, lost } = await sealsUnder(env.DB, {
    keyIds: before,
    held: [current, ...before],
    limit: slice,
  });
  let resealed = 0;
  for (const value of values) {
    try {
      await sealAnew(env, value, await unseal(env, value.sealed, sealContext(value.scope, value.id)));
      resealed += 1;
    } catch (thrown) {
      logError("value not sealed anew", { ...idsOf(value), secret_id: value.id }, thrown);
    }
  }
  return { object: "reseal", resealed, remaining: count - resealed, lost };
}
