/**
 * Values of the secrets an environment names in `needs`. `can.secret` answers at once, so they are opened when a
 * rollout's hooks are about to run, and kept in the isolate's memory for five seconds. Never written anywhere.
 */
import { EnvError } from "../../contract/errors.ts";
import type { Scope } from "../../contract/scope.ts";
import type { SecretRow } from "../db/schema.ts";
import { secretsNamed } from "../db/secrets.ts";
import { OUTAGE_MS, TtlCache } from "./caches.ts";
import { idsOf, logError } from "./log.ts";
import { openSealed } from "./sealed-values.ts";

const PREFIX = "secret:";
const opened = new TtlCache<ReadonlyMap<string, string>>(5000, 4000, OUTAGE_MS);

/** The names in `needs` that are secrets'. */
export function secretNames(needs: readonly string[]): string[] {
  const secrets = needs.filter((need) => need.startsWith(PREFIX));
  return [...new Set(secrets.map((need) => need.slice(PREFIX.length)))];
}

/** Values by name. One that was deleted since, or was sealed under another ROLLCALL_SECRET, is missing. */
export async function openSecrets(
  env: Env,
  scope: Scope,
  needs: readonly string[],
  now: number,
): Promise<ReadonlyMap<string, string>> {
  const names = secretNames(needs).sort();
  if (names.length === 0) return new Map();
  const kept = `${scope.orgId}/${scope.projectId}/${names.join("/")}`;
  const values = await opened.get(kept, now, async () => {
    const rows = await secretsNamed(env.DB, scope, names);
    const found = await Promise.all(rows.map((row) => openValue(env, scope, row)));
    return new Map(found.flat());
  });
  // A missing one may be set at any moment, and the runs accepted from then on count on it.
  if (values.size < names.length) opened.forget(kept);
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

/** What `can.secret` says. */
export function secretFrom(values: ReadonlyMap<string, string>): (name: string) => string {
  return (name) => {
    const value = values.get(name);
    if (value !== undefined) return value;
    throw new EnvError(`the secret ${name} can no longer be decrypted: set it again under /v1/secrets`);
  };
}
