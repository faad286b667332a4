/**
 * Values of the secrets that an environment names in `needs`. `can.secret` is synchronous, so the values are opened
 * before a rollout's hooks run, and kept in the isolate's memory. They are never written anywhere.
 */
import type { Scope } from "../../contract/scope.ts";
import type { Secrets } from "../../core/protocol/environment-code.ts";
import { databaseOf } from "../db/database.ts";
import type { SecretRow } from "../db/schema.ts";
import { secretsNamed } from "../db/secrets.ts";
import { idsOf, logError } from "./log.ts";
import { openSealed } from "./sealed-values.ts";
import { SettingsCache } from "./settings-cache.ts";

const PREFIX = "secret:";
const opened = new SettingsCache<Secrets>();

/** The names of the secrets in `needs`. */
export function secretNames(needs: readonly string[]): string[] {
  const secrets = needs.filter((need) => need.startsWith(PREFIX));
  return [...new Set(secrets.map((need) => need.slice(PREFIX.length)))];
}

/** Values by name. A secret that was deleted, or was sealed under a secret that is gone, is missing. */
export async function openSecrets(env: Env, scope: Scope, needs: readonly string[], now: number): Promise<Secrets> {
  const names = secretNames(needs).sort();
  if (names.length === 0) return {};
  const kept = `${scope.orgId}/${scope.projectId}/${names.join("/")}`;
  const values = await opened.get({ env, orgId: scope.orgId, name: kept, now }, async () => {
    const rows = await secretsNamed(databaseOf(env), scope, names);
    const found = await Promise.all(rows.map((row) => openValue(env, scope, row)));
    return Object.fromEntries(found.flat());
  });
  // A missing secret may be set at any moment, and runs that are accepted after that need it.
  if (Object.keys(values).length < names.length) opened.forget(kept);
  return values;
}

async function openValue(
  env: Env,
  scope: Scope,
  { id, name, sealed_value }: SecretRow,
): Promise<[name: string, value: string][]> {
  try {
    return [[name, await openSealed(env, { kind: "secret", scope, id, sealed: sealed_value })]];
  } catch (thrown) {
    logError("secret does not open", { ...idsOf({ scope }), secret_id: id }, thrown);
    return [];
  }
}
