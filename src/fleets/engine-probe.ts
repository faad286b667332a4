/**
 * Finds out what an engine can do, when it is attached, and checks its health regularly. The engine's version is shown
 * but not relied on: only its routes and its answers count.
 */

import type { ReplicaCapabilities } from "../contract/fleet.ts";
import { listedModels } from "../core/training/engine-exactness.ts";
import { probeEndpoint } from "../kernel/clients/probe.ts";
import { member } from "../kernel/clients/reply-words.ts";
import { replyWithoutKey } from "../kernel/clients/without-key.ts";
import { askEngine, type Engine, type EngineAnswer, refusalOf } from "./engine-calls.ts";

/** Routes that an update may use, with the HTTP method of each. */
const ROUTES = {
  "/pause": "POST",
  "/resume": "POST",
  "/is_paused": "GET",
  "/collective_rpc": "POST",
  "/reset_prefix_cache": "POST",
  "/update_weights": "POST",
  "/update_weight_version": "POST",
  "/weight_info": "GET",
  "/v1/load_lora_adapter": "POST",
  "/v1/unload_lora_adapter": "POST",
  "/init_broadcaster": "POST",
  "/liveness": "GET",
} as const;

const PROBE_MS = 10_000;
const CHECK_MS = 5000;
/** Few enough that one engine does not take all connections of a Worker. */
const AT_ONCE = 4;

export interface EngineProbe {
  /** The model to sample from; null: the first in the list. */
  readonly model: string | null;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly deadline_ms?: number;
}

/** Never throws: `error` holds a failure, and the other fields show how far the probe got. */
export async function probeEngine(engine: Engine, probe: EngineProbe): Promise<ReplicaCapabilities> {
  const { model, now, deadline_ms = PROBE_MS } = probe;
  const { base_url, api_key, send, openReservation } = engine;
  const signal = AbortSignal.timeout(deadline_ms);
  const [endpoint, control] = await Promise.all([
    probeEndpoint({ base_url, api_key, send, openReservation, model, usual: null, now, deadline_ms }),
    controlSide(engine, signal),
  ]);
  return { ...endpoint, ...control };
}

/** A failure here is not an error: perhaps only another party that updates the engine can reach these routes. */
async function controlSide(engine: Engine, signal: AbortSignal) {
  const [version, listed] = await Promise.all([get(engine, "/version", signal), get(engine, "/openapi.json", signal)]);
  const routes = routesIn(listed) ?? (await routesByAsking(engine, signal));
  const info = routes.includes("/weight_info") ? await get(engine, "/weight_info", signal) : null;
  const key = engine.control_key ?? engine.api_key;
  return replyWithoutKey(
    { version: textOf(version, "version"), routes, weight_info: textOf(info, "weight_version") },
    key,
  );
}

/** Null if the server does not list its routes. */
function routesIn(listed: EngineAnswer | null): string[] | null {
  const paths = listed?.status === 200 ? member(listed.body, "paths") : undefined;
  if (typeof paths !== "object" || paths === null) return null;
  return Object.keys(ROUTES).filter((route) => Object.hasOwn(paths, route));
}

/** Uses a GET, which changes nothing: a route that takes only POST answers 405. */
async function routesByAsking(engine: Engine, signal: AbortSignal): Promise<string[]> {
  const found: string[] = [];
  const entries = Object.entries(ROUTES);
  for (let at = 0; at < entries.length; at += AT_ONCE) {
    const some = entries.slice(at, at + AT_ONCE);
    const answers = await Promise.all(some.map(([route]) => get(engine, route, signal)));
    if (answers.every((answer) => answer === null)) return found;
    for (const [which, [route, method]] of some.entries()) {
      const status = answers[which]?.status;
      if (status === (method === "GET" ? 200 : 405)) found.push(route);
    }
  }
  return found;
}

export type EngineHealth =
  | {
      readonly kind: "alive";
      /** Includes adapters. */
      readonly models: readonly string[];
      /** When its process started, in epoch seconds. Another value than before means a restart. Null: not reported. */
      readonly started_at: number | null;
      /** The weights that the engine reports; null: not reported. */
      readonly weights: string | null;
      readonly paused: boolean | null;
    }
  | { readonly kind: "down"; readonly message: string };

/**
 * Checks the engine's health without sampling. It is alive if it lists its models and GET /health does not answer 503.
 */
export async function checkEngine(engine: Engine, { deadline_ms = CHECK_MS } = {}): Promise<EngineHealth> {
  const signal = AbortSignal.timeout(deadline_ms);
  // Sent alone, so that an engine that hangs holds only one connection.
  const listed = await askEngine(engine, { side: "data", method: "GET", path: "/models", signal });
  if (listed.kind !== "answered") return { kind: "down", message: listed.message };
  if (listed.status !== 200) return { kind: "down", message: refusalOf(engine, "GET /models", listed) };
  const [health, metrics] = await Promise.all([get(engine, "/health", signal), get(engine, "/metrics", signal)]);
  if (health?.status === 503) return { kind: "down", message: refusalOf(engine, "GET /health", health) };
  const [info, pause] = await Promise.all([get(engine, "/weight_info", signal), get(engine, "/is_paused", signal)]);
  const paused = member(pause?.body, "is_paused");
  const models = listedModels(listed.body).map(({ id }) => id);
  return {
    kind: "alive",
    models: replyWithoutKey(models, engine.api_key),
    started_at: startIn(metrics),
    weights: replyWithoutKey(textOf(info, "weight_version"), engine.control_key ?? engine.api_key),
    paused: typeof paused === "boolean" ? paused : null,
  };
}

/** Null if there is no answer. */
async function get(engine: Engine, path: string, signal: AbortSignal): Promise<EngineAnswer | null> {
  const answer = await askEngine(engine, { side: "control", method: "GET", path, signal, beginning: true });
  return answer.kind === "answered" ? answer : null;
}

const LONGEST_TEXT = 200;

function textOf(answer: EngineAnswer | null, name: string): string | null {
  const value = answer?.status === 200 ? member(answer.body, name) : undefined;
  return typeof value === "string" ? value.slice(0, LONGEST_TEXT) : null;
}

/** Prometheus text format: 1.79e+09 and 1790000000.12 are both usual. */
function startIn(metrics: EngineAnswer | null): number | null {
  const line = metrics?.status === 200 ? /^process_start_time_seconds(?:\{[^}\n]*\})? (\S+)/m.exec(metrics.text) : null;
  const seconds = Number(line?.[1] ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds : null;
}
