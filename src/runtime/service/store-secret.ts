/** Secrets of environments, made and changed: the value is sealed before it is stored and never read back. */
import type { SecretRequest, SecretView } from "../../contract/endpoint.ts";
import type { Scope } from "../../contract/scope.ts";
import { mintId } from "../../core/ids.ts";
import { findSecret, insertSecret, secretViewOf, updateSecret } from "../../db/secrets.ts";
import { projectGone, type Result, refuse } from "../contract/refusal.ts";
import { type CreateOptions, replay, toRemember } from "../kit/idempotency.ts";
import { minting, seal, sealContext } from "../kit/secrets.ts";
import { noteProject } from "./note-project.ts";
import { notFound } from "./read-run.ts";

const OPERATION = "createSecret";

export async function createSecret(
  env: Env,
  scope: Scope,
  { name, value }: SecretRequest,
  options: CreateOptions,
): Promise<Result<{ value: SecretView; replayed: boolean }>> {
  const before = await findRepeated(env, scope, options);
  if (before !== null) return before;
  const id = mintId("sec", minting(env, options.now));
  const sealed_value = await seal(env, value, sealContext(scope, id));
  const times = { created_at: options.now, updated_at: options.now };
  const secret = { id, name, sealed_value, ...times };
  const key = toRemember(OPERATION, id, options);
  const kept = await insertSecret(env.DB, scope, secret, key);
  if (kept === "gone") return projectGone();
  if (kept === "taken") {
    const message = `there is a secret called ${name} already: PATCH /v1/secrets/${name} changes it`;
    return (await findRepeated(env, scope, options)) ?? refuse("conflict", message, "name");
  }
  if (key !== null) await noteProject(env, scope, options.now);
  return { ok: true, value: { value: secretViewOf(secret), replayed: false } };
}

/** Rollouts know the new value after five seconds at the latest. */
export async function changeSecret(
  env: Env,
  scope: Scope,
  nameOrId: string,
  value: string,
  now: number,
): Promise<Result<SecretView>> {
  const found = await findSecret(env.DB, scope, nameOrId);
  if (found === null) return notFound("secret", nameOrId);
  const sealed_value = await seal(env, value, sealContext(scope, found.id));
  const changed = await updateSecret(env.DB, scope, found.id, { sealed_value, updated_at: now });
  if (changed === null) return notFound("secret", nameOrId);
  return { ok: true, value: secretViewOf(changed) };
}

async function findRepeated(env: Env, scope: Scope, options: CreateOptions) {
  const found = await replay(env, scope, OPERATION, options, (id) => findSecret(env.DB, scope, id));
  if (found === null || !found.ok) return found;
  return { ok: true, value: { value: secretViewOf(found.value), replayed: true } } as const;
}
