/** What this deployment offers to environments, before `needs` narrows it. */
import type { OfferedCapabilities } from "../core/environments/capabilities.ts";
import type { Scope } from "../core/scope.ts";
import { secretsNamed } from "../db/secrets.ts";
import { secretFrom, secretNames } from "./secret-values.ts";

/** Needs any project has; a secret is there once it is set. */
const OFFERED_NEEDS: readonly string[] = ["fetch"];

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

/** `secrets`: values by name, opened beforehand. */
export function rolloutCapabilities(
  now: () => number,
  secrets: ReadonlyMap<string, string>,
): Omit<OfferedCapabilities, "random"> {
  return {
    now,
    secret: secretFrom(secrets),
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      return { status: response.status, text: () => response.text() };
    },
  };
}
