/**
 * The endpoints a run names, its policy's and its judges', by name or given inline. Resolved to ids when the run is
 * accepted, so that a later change of a name moves no run elsewhere.
 */
import { mintId } from "../core/ids.ts";
import type { ResolvedJudges } from "../core/judge-target.ts";
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
  return await resolveNamed(env, scope, endpoint, now, "endpoint");
}

/** `param`: the field that names it, for whatever is wrong with it. */
async function resolveNamed(
  env: Env,
  scope: Scope,
  endpoint: RunRequest["endpoint"],
  now: number,
  param: string,
): Promise<Result<RunEndpoint>> {
  if (typeof endpoint !== "string") return await sealedEndpoint(env, scope, endpoint, now, param);
  const found = await findEndpoint(env.DB, scope, endpoint);
  if (found === null) return refuse("not_found", `no endpoint ${endpoint}`, param);
  const { max_concurrent } = found;
  return { ok: true, value: { shown: found, inline: null, max_concurrent } };
}

export interface RunJudges {
  readonly judges: ResolvedJudges;
  /** Endpoints that came with them, to be stored beside the run. */
  readonly inline: readonly InlineEndpointRow[];
}

export async function resolveJudges(
  env: Env,
  scope: Scope,
  asked: RunRequest["judges"],
  now: number,
): Promise<Result<RunJudges>> {
  const judges: Record<string, ResolvedJudges[string]> = {};
  const inline: InlineEndpointRow[] = [];
  for (const [name, target] of Object.entries(asked)) {
    const param = `judges.${name}.endpoint`;
    const found = await resolveNamed(env, scope, target.endpoint, now, param);
    if (!found.ok) return found;
    judges[name] = { ...target, endpoint: found.value.shown.id };
    if (found.value.inline !== null) inline.push(found.value.inline);
  }
  return { ok: true, value: { judges, inline } };
}

async function sealedEndpoint(
  env: Env,
  scope: Scope,
  { base_url, api_key }: Exclude<RunRequest["endpoint"], string>,
  now: number,
  param: string,
): Promise<Result<RunEndpoint>> {
  const refused = refuseAddress(env, base_url, `${param}.base_url`);
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
