/**
 * Loads new weights onto one engine, as the mode of its fleet says. Supports several ages of vLLM and prime-rl's own
 * server. What an engine supports is found by its routes and refusals, never by its version.
 *
 * Invariants. Nothing throws, and a load ends within its timeout. `done` is returned only after the weights were loaded
 * and the prefix cache holds no block of older weights. `refused` and `unreached` are returned only if the previous
 * weights are certainly still loaded. A load may be repeated after a kill.
 */

import { member } from "../kernel/clients/reply-words.ts";
import {
  askEngine,
  type Engine,
  type EngineReply,
  type FullReply,
  isMissing,
  plainReply,
  refusalOf,
  sendToEngine,
} from "./engine-calls.ts";

export type WeightLoad =
  /** `adapter` includes the version; no other weights ever have this name. */
  | { readonly mode: "lora_versioned"; readonly adapter: string; readonly location: string }
  /** `label`: the name that GET /weight_info must report afterwards, on engines that have this route; null: none. */
  | { readonly mode: "reload"; readonly location: string; readonly label: string | null }
  | { readonly mode: "prime_rl"; readonly location: string };

const DEV_MODE = "start the engine with VLLM_SERVER_DEV_MODE=1";
const LORA = "start the engine with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True";
/** A route that prime-rl's own server has and vLLM does not. */
const OF_PRIME_RL = "/init_broadcaster";

/** Runs between a pause and a resume, in the modes that pause. */
export async function loadWeights(engine: Engine, load: WeightLoad, timeout_ms: number): Promise<EngineReply> {
  const call: Call = { engine, signal: AbortSignal.timeout(timeout_ms) };
  switch (load.mode) {
    case "lora_versioned":
      return await loadVersion(call, load);
    case "reload":
      return await reload(call, load);
    case "prime_rl":
      return await primeRl(call, load.location);
  }
}

/** An adapter that is not loaded counts as done. */
export async function unloadAdapter(engine: Engine, adapter: string, timeout_ms: number): Promise<EngineReply> {
  const call: Call = { engine, signal: AbortSignal.timeout(timeout_ms) };
  const reply = await send(call, "/v1/unload_lora_adapter", { lora_name: adapter });
  const absent = reply.status === 404 && !isMissing(reply);
  return absent ? { kind: "done" } : plainReply(reply);
}

interface Call {
  readonly engine: Engine;
  readonly signal: AbortSignal;
}

async function send({ engine, signal }: Call, path: string, body?: object): Promise<FullReply> {
  return await sendToEngine(engine, { path, signal, ...(body !== undefined && { body }) });
}

type Adapter = Extract<WeightLoad, { mode: "lora_versioned" }>;

async function loadVersion(call: Call, { adapter, location }: Adapter): Promise<EngineReply> {
  const reply = await send(call, "/v1/load_lora_adapter", { lora_name: adapter, lora_path: location });
  return isLoaded(reply) ? { kind: "done" } : advised(reply, LORA);
}

function isLoaded({ status, said = "" }: FullReply): boolean {
  return status === 400 && /already (been )?(loaded|exists)/i.test(said);
}

async function reload(call: Call, { location, label }: { location: string; label: string | null }) {
  const body = { method: "reload_weights", kwargs: { weights_path: location } };
  const reply = await send(call, "/collective_rpc", body);
  if (reply.kind !== "done") return advised(reply, DEV_MODE);
  const emptied = await emptyCache(call);
  if (emptied.kind !== "done" || label === null) return emptied;
  const labelled = await send(call, "/update_weight_version", { new_version: label });
  if (isMissing(labelled)) return { kind: "done" } as const;
  return labelled.kind === "done" ? await confirm(call, label) : halfDone(labelled);
}

async function primeRl(call: Call, location: string): Promise<EngineReply> {
  const own = await routeOf(call, OF_PRIME_RL);
  if (own === "missing") {
    return cannot(call.engine, `it is not prime-rl's own server: it has no POST ${OF_PRIME_RL}`);
  }
  if (own !== "there") return own;
  // The server empties its prefix cache itself.
  return plainReply(await send(call, "/update_weights", { weight_dir: location }));
}

/** Uses a GET, which changes nothing: a route that takes only POST answers 405. */
async function routeOf({ engine, signal }: Call, path: string): Promise<"there" | "missing" | EngineReply> {
  const answer = await askEngine(engine, { side: "control", method: "GET", path, signal });
  if (answer.kind !== "answered") return { kind: "unreached", message: answer.message };
  if (answer.status === 405) return "there";
  if (answer.status === 404) return "missing";
  return { kind: "refused", message: refusalOf(engine, `GET ${path}`, answer) };
}

async function emptyCache(call: Call): Promise<EngineReply> {
  const reply = await send(call, "/reset_prefix_cache");
  return reply.kind === "done" ? { kind: "done" } : halfDone(reply);
}

/** Checks the weights that the engine reports, if it reports any. */
async function confirm({ engine, signal }: Call, label: string): Promise<EngineReply> {
  const answer = await askEngine(engine, { side: "control", method: "GET", path: "/weight_info", signal });
  if (answer.kind !== "answered") return { kind: "unknown", message: answer.message };
  if (answer.status === 404) return { kind: "done" };
  const reported = member(answer.body, "weight_version");
  if (reported === label) return { kind: "done" };
  const said =
    typeof reported === "string" ? `weight_version ${JSON.stringify(reported.slice(0, 100))}` : "no weight_version";
  const message = answer.status === 200 ? `${engine.name}: GET /weight_info answered ${said}, not ${label}` : "";
  return { kind: "unknown", message: message || refusalOf(engine, "GET /weight_info", answer) };
}

/** The load has started. Whatever the engine answered, the previous weights may be gone. */
function halfDone(reply: FullReply): EngineReply {
  return reply.kind === "done" ? { kind: "done" } : { kind: "unknown", message: reply.message };
}

function advised(reply: FullReply, advice: string): EngineReply {
  if (reply.kind === "done" || !isMissing(reply)) return plainReply(reply);
  return { kind: "refused", message: `${reply.message}: ${advice}` };
}

function cannot({ name }: Engine, why: string): EngineReply {
  return { kind: "refused", message: `${name}: ${why}` };
}
