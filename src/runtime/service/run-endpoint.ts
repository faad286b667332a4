/**
 * Where a run's model is called, an endpoint or a fleet, and the endpoints of its judges, by name or given inline. Resolved
 * to ids when the run is accepted, so that a later change of a name moves no run elsewhere.
 */

import type { EndpointCapabilities } from "../../contract/endpoint.ts";
import type { EvalRequest } from "../../contract/eval-request.ts";
import type { ResolvedJudge, TokenPrices } from "../../contract/judgement.ts";
import type { RunFleet, RunSpec } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import { mintId } from "../../core/ids.ts";
import { findEndpoint, getEndpoint } from "../../db/endpoints.ts";
import { type InlineEndpointRow, type RunPlace, type RunRecord, trainingOn } from "../../db/runs.ts";
import type { EndpointRow } from "../../db/schema.ts";
import { type Result, refuse } from "../contract/refusal.ts";
import { refuseAddress } from "../kit/address.ts";
import type { FleetPlace } from "../kit/fleet-hooks.ts";
import { minting, sealedKey } from "../kit/secrets.ts";
import { fleets } from "../kit/slice-hooks.ts";
import type { Priced } from "./run-money.ts";

/** Where a run's model is called: one endpoint, or the replicas of a fleet. */
export interface RunEndpoint {
  readonly id: string;
  readonly shown: RunPlace;
  /** Where it is, with its sealed key. */
  readonly place: EndpointPlace | FleetPlace;
  /** What is to be stored beside the run; null for an endpoint that is there already. */
  readonly inline: InlineEndpointRow | null;
  /** Rollouts at once it allows any run; null = as many as the run asks for. */
  readonly max_concurrent: number | null;
  /** What it was seen to support; null where nobody looked. */
  readonly capabilities: EndpointCapabilities | null;
  /** Null where nobody said what it costs. */
  readonly prices: TokenPrices | null;
}

type EndpointPlace = { readonly kind: "endpoint" } & Pick<EndpointRow, "id" | "base_url" | "sealed_key" | "refuses">;

/** What a run names where its model is to be called: one of the two (eval-request.ts). */
type Named = Pick<EvalRequest, "endpoint" | "fleet">;
type EndpointGiven = NonNullable<Named["endpoint"]>;

/** `byRun`: it was begun by another run, which may name endpoints that belong to it by their ids. */
export async function resolvePlace(
  env: Env,
  scope: Scope,
  { endpoint, fleet }: Named,
  now: number,
  byRun = false,
): Promise<Result<RunEndpoint>> {
  if (fleet !== undefined) return await resolveFleet(env, scope, fleet);
  if (endpoint === undefined) return refuse("invalid_request", "endpoint: is required", "endpoint");
  const found = await resolveNamed(env, scope, endpoint, now, { param: "endpoint", byRun });
  return found.ok ? { ok: true, value: found.value } : found;
}

/** Where the model of a run that is there already is called; why it cannot be any more, else. */
export async function placeOfRun(env: Env, scope: Scope, { run, fleet }: RunRecord): Promise<Result<RunEndpoint>> {
  if (fleet !== null) {
    const found = await resolveFleet(env, scope, fleet.id);
    if (found.ok || found.error.code !== "not_found") return found;
    return refuse("conflict", "the fleet of its run was deleted: name an endpoint", "endpoint");
  }
  const kept = await getEndpoint(env.DB, scope, run.endpoint_id);
  if (kept !== null && kept.deleted_at === null) return { ok: true, value: endpointOf(kept) };
  return refuse("conflict", "the endpoint of its run was deleted: name another", "endpoint");
}

async function resolveFleet(env: Env, scope: Scope, nameOrId: string): Promise<Result<RunEndpoint>> {
  const found = await fleets().find(env, scope, nameOrId);
  if (!found.ok) return found;
  const place = found.value;
  const { id, name, prices } = place;
  const shown = { endpoint: null, fleet: { id, name } };
  return { ok: true, value: { id, shown, place, inline: null, max_concurrent: null, capabilities: null, prices } };
}

/** Another training run has the fleet: its replicas serve the weights of one at a time. */
export async function refuseTaken(env: Env, scope: Scope, fleetId: string): Promise<Result<never>> {
  const [other] = await trainingOn(env.DB, scope, fleetId).limit(1);
  const by = other === undefined ? "another training run" : `the training run ${other.id}`;
  const message = `${by} has the fleet, whose replicas serve the weights of one run at a time: wait for its end, or cancel it`;
  return refuse("conflict", message, "fleet");
}

/** The fleet as the run's spec names it; nothing for a run on an endpoint. */
export function fleetOf({ place }: Pick<RunEndpoint, "place">, weights: PlayedWeights = {}): Pick<RunSpec, "fleet"> {
  if (place.kind !== "fleet") return {};
  const { id, location_hint } = place;
  const hint = location_hint === null ? {} : { location_hint };
  return { fleet: { id, ...hint, ...weights } };
}

/** Which weights a run's calls are sampled by, where that is not all the same. */
export type PlayedWeights = Pick<RunFleet, "weights_of" | "initial_weights">;

/** Where its tokens are used, for what they cost. The platform offers no engine of a fleet: whoever has it pays for it. */
export function pricedAt(
  { place, prices }: Pick<RunEndpoint, "place" | "prices">,
  model: string,
): NonNullable<Priced["policy"]> {
  return { base_url: place.kind === "fleet" ? null : place.base_url, model, prices };
}

interface Naming {
  /** The field that names it, for whatever is wrong with it. */
  readonly param: string;
  /** One that belongs to a run may be named, too: by its id. */
  readonly byRun: boolean;
}

/** One that is no fleet. */
type OneEndpoint = RunEndpoint & { readonly place: EndpointPlace };

async function resolveNamed(
  env: Env,
  scope: Scope,
  endpoint: EndpointGiven,
  now: number,
  { param, byRun }: Naming,
): Promise<Result<OneEndpoint>> {
  if (typeof endpoint !== "string") return await sealedEndpoint(env, scope, endpoint, now, param);
  const find = byRun ? getEndpoint : findEndpoint;
  const found = await find(env.DB, scope, endpoint);
  if (found === null) return refuse("not_found", `no endpoint ${endpoint}`, param);
  const refused = await refuseAddress(env, scope, found.base_url, param);
  if (refused !== null) return refused;
  return { ok: true, value: endpointOf(found) };
}

function endpointOf(row: Omit<EndpointRow, "org_id" | "project_id">): OneEndpoint {
  const { id, max_concurrent, capabilities, prices } = row;
  const known = { max_concurrent, capabilities, prices };
  return { id, shown: { endpoint: row, fleet: null }, place: { ...row, kind: "endpoint" }, inline: null, ...known };
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
    const { id, place, prices } = found.value;
    places[name] = { base_url: place.base_url, model: asks.model };
    judges[name] = { ...asks, endpoint_id: id, ...(prices && { prices }) };
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
  { base_url, api_key, refuses = [], prices: given }: Exclude<EndpointGiven, string>,
  now: number,
  param: string,
): Promise<Result<OneEndpoint>> {
  const refused = await refuseAddress(env, scope, base_url, `${param}.base_url`);
  if (refused !== null) return refused;
  const prices = given ?? null;
  const id = mintId("ep", minting(env, now));
  const inline = {
    id,
    base_url,
    ...(await sealedKey(env, scope, id, api_key ?? null)),
    ...(prices !== null && { prices }),
    refuses,
    created_at: now,
  };
  const shown = { endpoint: { ...inline, name: null }, fleet: null };
  const unknown = { max_concurrent: null, capabilities: null, prices };
  return { ok: true, value: { id, shown, place: { ...inline, kind: "endpoint" }, inline, ...unknown } };
}
