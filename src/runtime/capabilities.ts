/** What this deployment offers to environments, before `needs` narrows it. */
import type { OfferedCapabilities } from "../core/environments/capabilities.ts";
import type { Scope } from "../core/scope.ts";
import { secretsNamed } from "../db/secrets.ts";
import { guardedFetch } from "./guarded-fetch.ts";
import { secretFrom, secretNames } from "./secret-values.ts";

/** Needs any project has; a secret is there once it is set. */
const OFFERED_NEEDS: readonly string[] = ["sql", "fetch"];

/** The first need that is not met, as the end of a sentence that says what to do; null when all are. */
export async function unmetNeed(
  env: Env,
  scope: Scope,
  needs: readonly string[],
): Promise<string | null> {
  const names = secretNames(needs);
  const unknown = needs.find(
    (need) => !OFFERED_NEEDS.includes(need) && !names.some((name) => need === `secret:${name}`),
  );
  if (unknown !== undefined) return `needs ${unknown}, which this platform does not offer`;
  const set = new Set((await secretsNamed(env.DB, scope, names)).map(({ name }) => name));
  const unset = names.find((name) => !set.has(name));
  if (unset === undefined) return null;
  return `needs secret:${unset}, which is not set: POST /v1/secrets {"name": "${unset}", "value": …}`;
}

/** `secrets`: values by name, opened beforehand. Chance and sql are each rollout's own. */
export function rolloutCapabilities(
  env: Env,
  now: () => number,
  secrets: ReadonlyMap<string, string>,
): Omit<OfferedCapabilities, "random" | "sql"> {
  return {
    now,
    secret: secretFrom(secrets),
    fetch: guardedFetch(env),
  };
}
