/**
 * Values that stand sealed in D1, opened. One that was sealed under a secret before the current one is sealed anew on
 * the way, so that in time nothing needs the old secret.
 */
import { replaceSeal, type SealedValue, sealsUnder } from "../../db/seals.ts";
import { logError } from "./log.ts";
import { seal, sealContext, sealKeyIds, unseal } from "./secrets.ts";

/** The value. Throws where this deployment does not hold the secret it was sealed under. */
export async function openSealed(env: Env, value: SealedValue): Promise<string> {
  const text = await unseal(env, value.sealed, sealContext(value.scope, value.id));
  const [current] = sealKeyIds(env);
  if (!value.sealed.startsWith(`${current}.`)) {
    // It opened, which is what was asked for; whoever opens it next tries again.
    await sealAnew(env, value, text).catch((thrown: unknown) => logError("value not sealed anew", value.id, thrown));
  }
  return text;
}

async function sealAnew(env: Env, value: SealedValue, text: string): Promise<void> {
  await replaceSeal(env.DB, value, await seal(env, text, sealContext(value.scope, value.id)));
}

export interface Resealed {
  /** Values that were sealed anew by this call. */
  readonly resealed: number;
  /** Values that are still sealed under a secret before the current one. */
  readonly remaining: number;
  /** Values sealed under a secret that this deployment does not hold: only setting them again helps. */
  readonly lost: number;
}

/** Seals anew at most `slice` values of anybody that are sealed under a secret before the current one. */
export async function resealSome(env: Env, slice: number): Promise<Resealed> {
  const [current, ...before] = sealKeyIds(env);
  const held = [current, ...before];
  const { values, count, lost } = await sealsUnder(env.DB, { keyIds: before, held, limit: slice });
  let resealed = 0;
  for (const value of values) {
    try {
      await sealAnew(env, value, await unseal(env, value.sealed, sealContext(value.scope, value.id)));
      resealed += 1;
    } catch (thrown) {
      logError("value not sealed anew", value.id, thrown);
    }
  }
  return { resealed, remaining: count - resealed, lost };
}
