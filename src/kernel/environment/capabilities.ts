/** What this deployment offers to environments, before `needs` narrows it. */

import type { Scope } from "../../contract/scope.ts";
import { addressesNeeded, requireFetch, secretFrom } from "../../core/environments/capabilities.ts";
import type { Need } from "../../core/environments/contract.ts";
import { formatPath, pathTo } from "../../core/field-path.ts";
import type { RolloutHost, Secrets } from "../../core/protocol/environment-code.ts";
import { databaseOf } from "../db/database.ts";
import { secretsNamed } from "../db/secrets.ts";
import { allowedHosts, openAllowedHosts, refusedUrl } from "../kit/address.ts";
import { type FetchMeans, guardedFetch } from "../kit/guarded-fetch.ts";
import { fetchedReservation } from "../kit/reply-reservation.ts";
import { openSecrets, secretNames } from "../kit/secret-values.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import type { RunSpec } from "../messages/wire.ts";

/** Needs that are met in every project; a secret need is met once the secret is set. */
const OFFERED_NEEDS: readonly string[] = ["sql", "fetch"];

/** An environment with needs, and the request field that named it. */
export interface Needing {
  readonly named: string;
  readonly needs: readonly string[];
  readonly param: string;
  /** The arguments, which may contain the addresses of its needs. */
  readonly args?: unknown;
}

/** A refusal for the first need that is not met, which says what to do; null if all are met. */
export async function refuseNeeds(
  env: Env,
  scope: Scope,
  { named, needs, param, args }: Needing,
): Promise<Result<never> | null> {
  for (const url of addressesNeeded(needs)) {
    const refused = refusedUrl(env, await allowedHosts(env, scope), url);
    if (refused === null) continue;
    const path = pathTo(args, url);
    const given = path === null ? param : formatPath(["environment_args", ...path]);
    return refuse("url_not_allowed", `${named} needs fetch:${url}: ${refused}`, given);
  }
  const unmet = await unmetNeed(env, scope, needs);
  return unmet === null ? null : refuse("unmet_need", `${named} ${unmet}`, param);
}

async function unmetNeed(env: Env, scope: Scope, needs: readonly string[]): Promise<string | null> {
  const names = secretNames(needs);
  const addresses = addressesNeeded(needs);
  const unknown = needs.find(
    (need) =>
      !OFFERED_NEEDS.includes(need) &&
      !names.some((name) => need === `secret:${name}`) &&
      !addresses.some((url) => need === `fetch:${url}`),
  );
  if (unknown !== undefined) return `needs ${unknown}, which this platform does not offer`;
  const set = new Set((await secretsNamed(databaseOf(env), scope, names)).map(({ name }) => name));
  const unset = names.find((name) => !set.has(name));
  if (unset === undefined) return null;
  return `needs secret:${unset}, which is not set: POST /v1/secrets {"name": "${unset}", "value": …}`;
}

/** Opened before environment code runs, so that a failure to open is not blamed on the code. */
export interface Opened {
  /** What the code declares and the run was accepted with. */
  readonly needs: readonly Need[];
  readonly secrets: Secrets;
  readonly hosts: FetchMeans["hosts"];
  /** Memory for the replies that its code gets. */
  readonly openReservation: NonNullable<FetchMeans["openReservation"]>;
}

export async function openMeans(
  env: Env,
  { scope, needs: accepted }: Pick<RunSpec, "scope" | "needs">,
  declared: readonly Need[],
  now: number,
): Promise<Opened> {
  const needs = accepted === undefined ? declared : declared.filter((need) => accepted.includes(need));
  const openReservation = () => fetchedReservation(env, scope.orgId);
  const secrets = await openSecrets(env, scope, needs, now);
  return { needs, secrets, hosts: await openAllowedHosts(env, scope), openReservation };
}

/** `calls`: how a rollout's calls are made. */
export function rolloutFetch(
  env: Env,
  now: () => number,
  { needs, secrets, ...means }: Opened,
  calls: Required<Pick<FetchMeans, "turn" | "signal">>,
): RolloutHost["fetch"] {
  return declaredFetch(needs, guardedFetch(env, { ...means, now, secret: secretFrom(secrets), ...calls }));
}

/** The same for scoring: its calls count among those of the invocation, at most six at a time. */
export function scoringFetch(
  env: Env,
  now: () => number,
  { needs, secrets, ...means }: Opened,
  subrequests: Subrequests,
): RolloutHost["fetch"] {
  const turn: FetchMeans["turn"] = (call) => subrequests.inTurn(call);
  return declaredFetch(needs, guardedFetch(env, { ...means, now, secret: secretFrom(secrets), turn }));
}

function declaredFetch(needs: readonly Need[], fetch: RolloutHost["fetch"]): RolloutHost["fetch"] {
  return async (url, options) => {
    requireFetch(needs, url, options);
    return await fetch(url, options);
  };
}
