/**
 * Opens values that are stored sealed in D1. A value that was sealed under an earlier secret is sealed again under the
 * current one, so that the old secret is no longer needed after some time.
 */
import { databaseOf } from "../db/database.ts";
import { replaceSeal, type SealedValue } from "../db/seals.ts";
import { idsOf, logError } from "./log.ts";
import { seal, sealContext, sealKeyIds, unseal } from "./secrets.ts";

/** The value. Throws if this deployment does not have the secret that it was sealed under. */
export async function openSealed(env: Env, value: SealedValue): Promise<string> {
  const text = await unseal(env, value.sealed, sealContext(value.scope, value.id));
  const [current] = sealKeyIds(env);
  if (!value.sealed.startsWith(`${current}.`)) {
    // The value was opened, so the caller gets it. The next caller tries again to seal it.
    await sealAnew(env, value, text).catch((thrown: unknown) =>
      logError("value not sealed anew", { ...idsOf(value), secret_id: value.id }, thrown),
    );
  }
  return text;
}

/** Does nothing if the value was changed meanwhile. */
export async function sealAnew(env: Env, value: SealedValue, text: string): Promise<void> {
  await replaceSeal(databaseOf(env), value, await seal(env, text, sealContext(value.scope, value.id)));
}
