/**
 * Resolves where a run's model is called (an endpoint or a fleet) and the endpoints of its judges, by name or inline.
 * They are resolved to ids when the run is accepted, so a later change of a name does not affect the run.
 */

import type { EndpointCapabilities } from "../../../contract/endpoint.ts";
import type { EvalRequest } from "../../../contract/eval-request.ts";
import type { ResolvedJudge, TokenPrices } from "../../../contract/judgement.ts";
import type { RunSpec } from "../../../contract/run-spec.ts";
import type { Scope } from "../../../contract/scope.ts";
import { REFERENCE_JUDGE } from "../../../contract/training-request.ts";
import { mintId } from "../../../core/ids.ts";
import { STREAMS } from "../../clients/adapted-request.ts";
import { databaseOf } from "../../db/database.ts";
import { findEndpoint, getEndpoint } from "../../db/endpoints.ts";
import { type InlineEndpointRow, type RunPlace, type RunRecord, trainingOn } from "../../db/runs.ts";
import type { EndpointRow } from "../../db/schema.ts";
import { refuseAddress } from "../../kit/address.ts";
import type { FleetPlace } from "../../kit/fleet-hooks.ts";
import { minting, sealedKey } from "../../kit/secrets.ts";
import { fleets } from "../../kit/slice-hooks.ts";
import { type Result, refuse } from "../../messages/refusal.ts";

/** Where a run's model is called: one endpoint, or the replicas of a fleet. */
export interface RunEndpoint {
  readonly id: string;
  readonly shown: RunPlace;
  /** Its address and sealed key; null for a run that samples nothing. */
  readonly place: EndpointPlace | FleetPlace | null;
  /** The inline endpoint to store with the run; null for an endpoint that exists already. */
  readonly inline: InlineEndpointRow | null;
  /** The most rollouts at once that it allows each run; null = no limit of its own. */
  readonly max_concurrent: number | null;
  /** What a probe found that it supports; null if it was not probed. */
  readonly capabilities: EndpointCapabilities | null;
  /** Null if its owner set no prices. */
  readonly prices: TokenPrices | null;
}

type EndpointPlace = { readonly kind: "endpoint" } & Pick<
  EndpointRow,
  "id" | "base_url" | "sealed_key" | "refuses" | "silence_limit_s"
>;

/** True for an endpoint that is known to refuse streams. */
export function repliesWhole({ place }: RunEndpoint): boolean {
  return place?.kind === "endpoint" && (place.refuses ?? []).includes(STREAMS);
}

/** Where a request says that its model is called: one of the two (eval-request.ts). */
type Named = Pick<EvalRequest, "endpoint" | "fleet">;
type EndpointGiven = NonNullable<Named["endpoint"]>;

/** Named by the request, or the place of another run. `called`: false for a run that samples nothing. */
export type PlaceWanted = Named | { readonly of: RunRecord; readonly called: boolean };

/** How names are looked up. */
export interface Lookup {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Another run starts this one, so it may name endpoints of that run by their ids. */
  readonly byRun: boolean;
}

export async function resolvePlace(
  env: Env,
  scope: Scope,
  wanted: PlaceWanted,
  lookup: Lookup,
): Promise<Result<RunEndpoint>> {
  if (!("of" in wanted)) {
    if (wanted.fleet !== undefined) return await resolveFleet(env, scope, wanted.fleet);
    if (wanted.endpoint !== undefined) return await resolveNamed(env, scope, wanted.endpoint, "endpoint", lookup);
    return refuse("invalid_request", "endpoint: is required", "endpoint");
  }
  const { run, fleet, endpoint } = wanted.of;
  if (!wanted.called) {
    const unknown = { inline: null, max_concurrent: null, capabilities: null, prices: null };
    return { ok: true, value: { id: run.endpoint_id, shown: { endpoint, fleet }, place: null, ...unknown } };
  }
  if (fleet !== null) {
    const found = await resolveFleet(env, scope, fleet.id);
    if (found.ok || found.error.code !== "not_found") return found;
    return refuse("conflict", "the fleet of its run was deleted: set endpoint", "endpoint");
  }
  const kept = await getEndpoint(databaseOf(env), scope, run.endpoint_id);
  if (kept !== null && kept.deleted_at === null) return { ok: true, value: endpointOf(kept) };
  return refuse("conflict", "the endpoint of its run was deleted: set another", "endpoint");
}

async function resolveFleet(env: Env, scope: Scope, nameOrId: string): Promise<Result<RunEndpoint>> {
  const found = await fleets().find(env, scope, nameOrId);
  if (!found.ok) return found;
  const place = found.value;
  const { id, name, prices } = place;
  const shown = { endpoint: null, fleet: { id, name } };
  return { ok: true, value: { id, shown, place, inline: null, max_concurrent: null, capabilities: null, prices } };
}

/** Refuses, because another training run has the fleet: its replicas serve the weights of one run at a time. */
export async function refuseTaken(env: Env, scope: Scope, fleetId: string): Promise<Result<never>> {
  const [other] = await trainingOn(databaseOf(env), scope, fleetId).limit(1);
  const by = other === undefined ? "another training run" : `the training run ${other.id}`;
  const message = `${by} uses the fleet, and a fleet serves one training run at a time: wait until it ends, or cancel it`;
  return refuse("conflict", message, "fleet");
}

/** A place that is an endpoint, not a fleet. */
type OneEndpoint = RunEndpoint & { readonly place: EndpointPlace };

/** `param`: the field that names it, for error messages. */
async function resolveNamed(
  env: Env,
  scope: Scope,
  endpoint: EndpointGiven,
  param: string,
  { now, byRun }: Lookup,
): Promise<Result<OneEndpoint>> {
  if (typeof endpoint === "string") {
    const found = await (byRun ? getEndpoint : findEndpoint)(databaseOf(env), scope, endpoint);
    if (found === null) return refuse("not_found", `no endpoint ${endpoint}`, param);
    const refused = await refuseAddress(env, scope, found.base_url, param);
    return refused ?? { ok: true, value: endpointOf(found) };
  }
  const { base_url, api_key, refuses = [], silence_limit_s = null, prices = null } = endpoint;
  const refused = await refuseAddress(env, scope, base_url, `${param}.base_url`);
  if (refused !== null) return refused;
  const id = mintId("ep", minting(env, now));
  const key = await sealedKey(env, scope, id, api_key ?? null);
  const asked = { ...(prices !== null && { prices }), refuses, silence_limit_s };
  const inline = { id, base_url, ...key, ...asked, created_at: now };
  const shown = { endpoint: { ...inline, name: null }, fleet: null };
  const unknown = { max_concurrent: null, capabilities: null, prices };
  return { ok: true, value: { id, shown, place: { ...inline, kind: "endpoint" }, inline, ...unknown } };
}

function endpointOf(row: Omit<EndpointRow, "org_id" | "project_id">): OneEndpoint {
  const { id, max_concurrent, capabilities, prices } = row;
  const known = { max_concurrent, capabilities, prices };
  return { id, shown: { endpoint: row, fleet: null }, place: { ...row, kind: "endpoint" }, inline: null, ...known };
}

/** The field of the request that sets a judge, or the reference of a training. */
export function judgePath(name: string): string {
  return name === REFERENCE_JUDGE ? "reference" : `judges.${name}`;
}

export interface JudgesWanted {
  /** By their names in the rubric. */
  readonly judges: EvalRequest["judges"];
  /** Judges of another run. `mustBeThere`: refuse if the endpoint of one was deleted since. */
  readonly kept?: { readonly judges: RunSpec["judges"]; readonly mustBeThere: boolean };
}

export interface RunJudges {
  readonly judges: Readonly<Record<string, ResolvedJudge>>;
  /** Addresses of the judges. A kept judge whose endpoint is gone has no entry. */
  readonly places: Readonly<Record<string, { readonly base_url: string; readonly model: string }>>;
  /** Inline endpoints of judges, to be stored with the run. */
  readonly inline: readonly InlineEndpointRow[];
}

/** `asked`: the names of the judges that the rubric calls. */
export async function resolveJudges(
  env: Env,
  scope: Scope,
  wanted: JudgesWanted,
  asked: readonly string[],
  lookup: Lookup,
): Promise<Result<RunJudges>> {
  const kept = await keptJudges(env, scope, wanted, asked);
  if (!kept.ok) return kept;
  const judges = { ...kept.value.judges };
  const places = { ...kept.value.places };
  const inline: InlineEndpointRow[] = [];
  for (const [name, { endpoint, ...asks }] of Object.entries(wanted.judges)) {
    const found = await resolveNamed(env, scope, endpoint, `${judgePath(name)}.endpoint`, lookup);
    if (!found.ok) return found;
    const { id, place, prices } = found.value;
    places[name] = { base_url: place.base_url, model: asks.model };
    judges[name] = { ...asks, endpoint_id: id, ...(prices && { prices }) };
    if (found.value.inline !== null) inline.push(found.value.inline);
  }
  return { ok: true, value: { judges, places, inline } };
}

/** The judges of another run that the rubric calls and the request does not name. */
async function keptJudges(
  env: Env,
  scope: Scope,
  { judges: named, kept }: JudgesWanted,
  asked: readonly string[],
): Promise<Result<Pick<RunJudges, "judges" | "places">>> {
  const taken = Object.entries(kept?.judges ?? {}).filter(
    ([name]) => asked.includes(name) && !Object.hasOwn(named, name),
  );
  const places: Record<string, { base_url: string; model: string }> = {};
  for (const [name, { endpoint_id, model }] of taken) {
    // By id, because an inline endpoint has no name.
    const found = await getEndpoint(databaseOf(env), scope, endpoint_id);
    if (kept?.mustBeThere === true && (found === null || found.deleted_at !== null)) {
      return refuse("conflict", `the endpoint of the judge ${name} was deleted: set another`, `judges.${name}`);
    }
    if (found !== null) places[name] = { base_url: found.base_url, model };
  }
  return { ok: true, value: { judges: Object.fromEntries(taken), places } };
}
