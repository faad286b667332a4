/** Creates and changes secrets of environments. The value is sealed before it is stored and is never shown again. */
import type { SecretRequest } from "../../contract/endpoint.ts";
import type { Scope } from "../../contract/scope.ts";
import { mintId } from "../../core/ids.ts";
import { databaseOf } from "../db/database.ts";
import type { SecretRow } from "../db/schema.ts";
import { findSecret, insertSecret, updateSecret } from "../db/secrets.ts";
import type { CreateOptions } from "../kit/idempotency.ts";
import { minting, seal, sealContext } from "../kit/secrets.ts";
import { projectGone, type Result, refuse } from "../messages/refusal.ts";
import { createInProject } from "./create-in-project.ts";
import { notFound } from "./read-run.ts";

export function createSecret(env: Env, scope: Scope, { name, value }: SecretRequest, options: CreateOptions) {
  const { now } = options;
  return createInProject(env, scope, options, {
    operation: "createSecret",
    find: (id) => findSecret(databaseOf(env), scope, id),
    async make() {
      const id = mintId("sec", minting(env, now));
      const sealed_value = await seal(env, value, sealContext(scope, id));
      return { ok: true, value: { id, name, sealed_value, created_at: now, updated_at: now } };
    },
    insert: (secret, key) => insertSecret(databaseOf(env), scope, secret, key),
    refusals: { taken: () => nameTaken(name), gone: projectGone },
  });
}

function nameTaken(name: string): Result<never> {
  return refuse("conflict", `a secret called ${name} already exists: change it with PATCH /v1/secrets/${name}`, "name");
}

/** Rollouts get the new value after at most five seconds. */
export async function changeSecret(
  env: Env,
  scope: Scope,
  { id, name }: SecretRow,
  value: string,
  now: number,
): Promise<Result<SecretRow>> {
  const sealed_value = await seal(env, value, sealContext(scope, id));
  const changed = await updateSecret(databaseOf(env), scope, id, { sealed_value, updated_at: now });
  // The name does not change, so it cannot be taken.
  if (changed === null || changed === "taken") return notFound("secret", name);
  return { ok: true, value: changed };
}
