/**
 * The endpoints a run names: its policy's, by name or given inline, and its judges', by name. Resolved to ids when the
 * run is accepted, so that a later change of a name moves no run elsewhere.
 */
import { mintId } from "../core/ids.ts";
import type { RunRequest } from "../core/run.ts";
import type { Scope } from "../core/scope.ts";
import { findEndpoint } from "../db/endpoints.ts";
import type { InlineEndpointRow, RunRecord } from "../db/runs.ts";
import { refuseAddress } from "./address.ts";
import { minting } from "./minting.ts";
import { type Result, refuse } from "./refusal.ts";
import { sealedKey } from "./sealed-key.ts";

export interface RunEndpoint {
  readonly shown: RunRecord["endpoint"];
  /** What is to be stored beside the run; null for an endpoint that is there already. */
  readonly inline: InlineEndpointRow | null;
  /** Rollouts at once it allows any run; null = as many as the run asks for. */
  readonly max_concurrent: number | null;
}

export async function resolveEndpoint(
  env: Env,
  scope: Scope,
  endpoint: RunRequest["endpoint"],
  now: number,
): Promise<Result<RunEndpoint>> {
  if (typeof endpoint !== "string") return await sealedEndpoint(env, scope, endpoint, now);
  const found = await findEndpoint(env.DB, scope, endpoint);
  if (found === null) return refuse("not_found", `no endpoint ${endpoint}`, "endpoint");
  const { max_concurrent } = found;
  return { ok: true, value: { shown: found, inline: null, max_concurrent } };
}

/** The judges with their endpoints by id. */
export async function resolveJudges(
  env: Env,
  scope: Scope,
  { judges }: RunRequest,
): Promise<Result<RunRequest["judges"]>> {
  const resolved: RunRequest["judges"] = {};
  for (const [name, target] of Object.entries(judges)) {
    const found = await findEndpoint(env.DB, scope, target.endpoint);
    if (found === null) {
      const param = `judges.${name}.endpoint`;
      return refuse("not_found", `no endpoint ${target.endpoint}`, param);
    }
    resolved[name] = { ...target, endpoint: found.id };
  }
  return { ok: true, value: resolved };
}

async function sealedEndpoint(
  env: Env,
  scope: Scope,
  { base_url, api_key }: Exclude<RunRequest["endpoint"], string>,
  now: number,
): Promise<Result<RunEndpoint>> {
  const refused = refuseAddress(env, base_url, "endpoint.base_url");
  if (refused !== null) return refused;
  const id = mintId("ep", minting(env, now));
  const inline = {
    id,
    base_url,
    ...(await sealedKey(env, scope, id, api_key ?? null)),
    created_at: now,
  };
  return { ok: true, value: { shown: { ...inline, name: null }, inline, max_concurrent: null } };
}
