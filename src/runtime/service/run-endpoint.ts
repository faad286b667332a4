/**
 * The endpoints a run names, its policy's and its judges', by name or given inline. Resolved to ids when the run is
 * accepted, so that a later change of a name moves no run elsewhere.
 */

import type { EndpointCapabilities } from "../../contract/endpoint.ts";
import type { EvalRequest } from "../../contract/eval-request.ts";
import type { ResolvedJudge, TokenPrices } from "../../contract/judgement.ts";
import type { Scope } from "../../contract/scope.ts";
import { mintId } from "../../core/ids.ts";
import { findEndpoint, getEndpoint } from "../../db/endpoints.ts";
import type { InlineEndpointRow, RunRecord } from "../../db/runs.ts";
import type { EndpointRow } from "../../db/schema.ts";
import { type Result, refuse } from "../contract/refusal.ts";
import { refuseAddress } from "../kit/address.ts";
import { minting, sealedKey } from "../kit/secrets.ts";

export interface RunEndpoint {
  readonly shown: RunRecord["endpoint"];
  /** Where it is, with its sealed key. */
  readonly place: Pick<EndpointRow, "id" | "base_url" | "sealed_key">;
  /** What is to be stored beside the run; null for an endpoint that is there already. */
  readonly inline: InlineEndpointRow | null;
  /** Rollouts at once it allows any run; null = as many as the run asks for. */
  readonly max_concurrent: number | null;
  /** What it was seen to support; null where nobody looked. */
  readonly capabilities: EndpointCapabilities | null;
  /** Null where nobody said what it costs. */
  readonly prices: TokenPrices | null;
}

export async function resolveEndpoint(
  env: Env,
  scope: Scope,
  endpoint: EvalRequest["endpoint"],
  now: number,
  byRun = false,
): Promise<Result<RunEndpoint>> {
  return await resolveNamed(env, scope, endpoint, now, { param: "endpoint", byRun });
}

interface Naming {
  /** The field that names it, for whatever is wrong with it. */
  readonly param: string;
  /** One that belongs to a run may be named, too: by its id. */
  readonly byRun: boolean;
}

async function resolveNamed(
  env: Env,
  scope: Scope,
  endpoint: EvalRequest["endpoint"],
  now: number,
  { param, byRun }: Naming,
): Promise<Result<RunEndpoint>> {
  if (typeof endpoint !== "string") return await sealedEndpoint(env, scope, endpoint, now, param);
  const find = byRun ? getEndpoint : findEndpoint;
  const found = await find(env.DB, scope, endpoint);
  if (found === null) return refuse("not_found", `no endpoint ${endpoint}`, param);
  const refused = await refuseAddress(env, scope, found.base_url, param);
  if (refused !== null) return refused;
  const { max_concurrent, capabilities, prices } = found;
  const known = { max_concurrent, capabilities, prices };
  return { ok: true, value: { shown: found, place: found, inline: null, ...known } };
}

export interface RunJudges {
  readonly judges: Readonly<Record<string, ResolvedJudge>>;
  /** Endpoints that came with them, to be stored beside the run. */
  readonly inline: readonly InlineEndpointRow[];
}

export async function resolveJudges(
  env: Env,
  scope: Scope,
  asked: EvalRequest["judges"],
  now: number,
  byRun = false,
): Promise<Result<RunJudges>> {
  const judges: Record<string, ResolvedJudge> = {};
  const inline: InlineEndpointRow[] = [];
  for (const [name, { endpoint, ...asks }] of Object.entries(asked)) {
    const param = `judges.${name}.endpoint`;
    const found = await resolveNamed(env, scope, endpoint, now, { param, byRun });
    if (!found.ok) return found;
    const { shown, prices } = found.value;
    judges[name] = { ...asks, endpoint_id: shown.id, ...(prices && { prices }) };
    if (found.value.inline !== null) inline.push(found.value.inline);
  }
  return { ok: true, value: { judges, inline } };
}

async function sealedEndpoint(
  env: Env,
  scope: Scope,
  { base_url, api_key, prices: given }: Exclude<EvalRequest["endpoint"], string>,
  now: number,
  param: string,
): Promise<Result<RunEndpoint>> {
  const refused = await refuseAddress(env, scope, base_url, `${param}.base_url`);
  if (refused !== null) return refused;
  const prices = given ?? null;
  const id = mintId("ep", minting(env, now));
  const inline = {
    id,
    base_url,
    ...(await sealedKey(env, scope, id, api_key ?? null)),
    ...(prices !== null && { prices }),
    created_at: now,
  };
  const shown = { ...inline, name: null };
  const unknown = { max_concurrent: null, capabilities: null, prices };
  return { ok: true, value: { shown, place: inline, inline, ...unknown } };
}
