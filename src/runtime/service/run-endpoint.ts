/**
 * The endpoints a run names, its policy's and its judges', by name or given inline. Resolved to ids when the run is
 * accepted, so that a later change of a name moves no run elsewhere.
 */

import type { EndpointCapabilities } from "../../contract/endpoint.ts";
import type { EvalRequest } from "../../contract/eval-request.ts";
import type { ResolvedJudge, TokenPrices } from "../../contract/judgement.ts";
import type { RunSpec } from "../../contract/run-spec.ts";
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
  /** Where they are asked. */
  readonly places: Readonly<Record<string, { readonly base_url: string; readonly model: string }>>;
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
  const places: Record<string, { base_url: string; model: string }> = {};
  const inline: InlineEndpointRow[] = [];
  for (const [name, { endpoint, ...asks }] of Object.entries(asked)) {
    const param = `judges.${name}.endpoint`;
    const found = await resolveNamed(env, scope, endpoint, now, { param, byRun });
    if (!found.ok) return found;
    const { shown, prices } = found.value;
    places[name] = { base_url: shown.base_url, model: asks.model };
    judges[name] = { ...asks, endpoint_id: shown.id, ...(prices && { prices }) };
    if (found.value.inline !== null) inline.push(found.value.inline);
  }
  return { ok: true, value: { judges, places, inline } };
}

/** Where judges that a run has already are asked; one whose endpoint is gone is in none. */
export async function placesOfJudges(env: Env, scope: Scope, judges: RunSpec["judges"]): Promise<RunJudges["places"]> {
  const places: Record<string, { base_url: string; model: string }> = {};
  for (const [name, { endpoint_id, model }] of Object.entries(judges ?? {})) {
    const found = await getEndpoint(env.DB, scope, endpoint_id);
    if (found !== null) places[name] = { base_url: found.base_url, model };
  }
  return places;
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
