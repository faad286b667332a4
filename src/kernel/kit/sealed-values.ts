/**
 * Values that stand sealed in D1, opened. One that was sealed under a secret before the current one is sealed anew on
 * the way, so that in time nothing needs the old secret.
 */
import { replaceSeal, type SealedValue } from "../db/seals.ts";
import { idsOf, logError } from "./log.ts";
import { seal, sealContext, sealKeyIds, unseal } from "./secrets.ts";

/** The value. Throws where this deployment does not hold the secret it was sealed under. */
export async function openSealed(env: Env, value: SealedValue): Promise<string> {
  const text = await unseal(env, value.sealed, sealContext(value.scope, value.id));
  const [current] = sealKeyIds(env);
  if (!value.sealed.startsWith(`${current}.`)) {
    // It opened, which is what was asked for; whoever opens it next tries again.
    await sealAnew(env, value, text).catch((thrown: unknown) =>
      logError("value not sealed anew", { ...idsOf(value), secret_id: value.id }, thrown),
    );
  }
  return text;
}

/** Nothing happens if the value was set meanwhile. */
export async function sealAnew(env: Env, value: SealedValue, text: string): Promise<void> {
  await replaceSeal(env.DB, value, await seal(env, text, sealContext(value.scope, value.id)));
}
