/** Issues the token of a run's trainer, and the secret that signs offers to it. Both are shown once. */
import type { Scope } from "../../contract/scope.ts";
import type { TrainerTarget } from "../../contract/training-request.ts";
import type { TrainerSecrets } from "../../contract/training-view.ts";
import { mintToken } from "../../core/ids.ts";
import { databaseOf } from "../db/database.ts";
import { replaceTrainerToken } from "../db/trainer-tokens.ts";
import { minting, seal, sealContext, sha256Hex } from "../kit/secrets.ts";
import type { StoredTrainer } from "../messages/training-wire.ts";

const SECRET_BYTES = 32;
/** What is issued for the trainer of a run, and what is stored with the run. */
interface Issued {
  readonly secrets: TrainerSecrets;
  readonly kept: StoredTrainer;
  readonly sealed_push_secret: string | null;
}

/** For a run that is about to be accepted. `base_url`: the platform's, as the caller addressed it. */
export async function issueTrainer(
  env: Env,
  scope: Scope,
  runId: string,
  target: TrainerTarget,
  base_url: string,
  now: number,
): Promise<Issued> {
  const token = await issueToken(env, scope, runId, now, now);
  if (target.delivery === "pull") {
    const secrets = { token, push_secret: null };
    return { secrets, kept: { base_url }, sealed_push_secret: null };
  }
  const push_secret = `whsec_${Buffer.from(crypto.getRandomValues(new Uint8Array(SECRET_BYTES))).toString("base64")}`;
  const context = sealContext(scope, runId);
  const sealed_push_secret = await seal(env, push_secret, context);
  return { secrets: { token, push_secret }, kept: { base_url }, sealed_push_secret };
}

/** The previous token works until `until`, in epoch milliseconds. */
export async function issueToken(env: Env, scope: Scope, run_id: string, now: number, until: number): Promise<string> {
  const token = mintToken("rct", minting(env, now, scope.orgId));
  const row = { hash: sha256Hex(token), run_id, created_at: now };
  await replaceTrainerToken(databaseOf(env), scope, row, until);
  return token;
}
