/**
 * New weights onto one engine, by the mode of its fleet: what vLLM of several ages and prime-rl's own server are asked,
 * found out by their routes and by what they refuse, never by their version.
 *
 * Invariants. Nothing throws, and all of a load ends in its time. `done` is said only after the weights were loaded and
 * no block of older weights is left in the prefix cache; `refused` and `unreached` only where the weights that were
 * there are there still. A load may be made again after a kill.
 */
import {
  askEngine,
  type Engine,
  type EngineReply,
  isMissing,
  plainReply,
  refusalOf,
  type Told,
  tellEngine,
} from "./engine-calls.ts";
import { member } from "./reply-words.ts";

export type WeightLoad =
  /** `adapter`: with its version; no other weights ever have that name. */
  | { readonly mode: "lora_versioned"; readonly adapter: string; readonly location: string }
  | { readonly mode: "lora_in_place"; readonly adapter: string; readonly location: string }
  /** `label`: what GET /weight_info is to say afterwards, on engines that have it; null: nothing. */
  | { readonly mode: "reload"; readonly location: string; readonly label: string | null }
  | {
      readonly mode: "transfer";
      readonly update_info: Readonly<Record<string, unknown>>;
      /** Null: somebody else initialises its engines. */
      readonly init_info: Readonly<Record<string, unknown>> | null;
      /** Whether it has been. One that has forgotten it is initialised again. */
      readonly initialized: boolean;
      readonly label: string | null;
    }
  | { readonly mode: "prime_rl"; readonly location: string };

const DEV_MODE = "start the engine with VLLM_SERVER_DEV_MODE=1";
const LORA = "start the engine with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True";
/** FastAPI and vLLM refuse a body of another shape with these. */
const OTHER_SHAPE = [400, 422];
/** prime-rl's own server has it, and vLLM has not. */
const OF_PRIME_RL = "/init_broadcaster";

/** Between a pause and a resume, where the mode has them. */
export async function loadWeights(engine: Engine, load: WeightLoad, timeout_ms: number): Promise<EngineReply> {
  const call: Call = { engine, signal: AbortSignal.timeout(timeout_ms) };
  switch (load.mode) {
    case "lora_versioned":
      return await loadVersion(call, load);
    case "lora_in_place":
      return await loadInPlace(call, load);
    case "reload":
      return await reload(call, load);
    case "transfer":
      return await transfer(call, load);
    case "prime_rl":
      return await primeRl(call, load.location);
  }
}

/** One that is not there is done. */
export async function unloadAdapter(engine: Engine, adapter: string, timeout_ms: number): Promise<EngineReply> {
  const reply = await unload({ engine, signal: AbortSignal.timeout(timeout_ms) }, adapter);
  const absent = reply.status === 404 && !isMissing(reply);
  return absent ? { kind: "done" } : plainReply(reply);
}

interface Call {
  readonly engine: Engine;
  readonly signal: AbortSignal;
}

async function tell({ engine, signal }: Call, path: string, body?: object): Promise<Told> {
  return await tellEngine(engine, { path, signal, ...(body !== undefined && { body }) });
}

type Adapter = { readonly adapter: string; readonly location: string };

async function loadVersion(call: Call, { adapter, location }: Adapter): Promise<EngineReply> {
  const reply = await tell(call, "/v1/load_lora_adapter", { lora_name: adapter, lora_path: location });
  return isLoaded(reply) ? { kind: "done" } : advised(reply, LORA);
}

async function loadInPlace(call: Call, { adapter, location }: Adapter): Promise<EngineReply> {
  // The cache knows an adapter by its name: without a way to empty it, blocks of the old one would be read.
  const emptying = await routeOf(call, "/reset_prefix_cache");
  if (emptying === "missing") {
    return cannot(call.engine, `it has no POST /reset_prefix_cache: ${DEV_MODE}, or use lora_versioned`);
  }
  if (emptying !== "there") return emptying;
  const body = { lora_name: adapter, lora_path: location, load_inplace: true };
  const reply = await tell(call, "/v1/load_lora_adapter", body);
  if (reply.kind === "done") return await emptyCache(call);
  if (!isLoaded(reply)) return advised(reply, LORA);
  // An engine of before `load_inplace` does not load over a name that it has.
  const gone = await unload(call, adapter);
  if (gone.kind !== "done" && gone.status !== 404) return plainReply(gone);
  const again = await tell(call, "/v1/load_lora_adapter", body);
  return again.kind === "done" ? await emptyCache(call) : halfDone(again);
}

async function unload(call: Call, adapter: string): Promise<Told> {
  return await tell(call, "/v1/unload_lora_adapter", { lora_name: adapter });
}

function isLoaded({ status, said = "" }: Told): boolean {
  return status === 400 && /already (been )?(loaded|exists)/i.test(said);
}

async function reload(call: Call, { location, label }: { location: string; label: string | null }) {
  const body = { method: "reload_weights", kwargs: { weights_path: location } };
  const reply = await tell(call, "/collective_rpc", body);
  if (reply.kind !== "done") return advised(reply, DEV_MODE);
  const emptied = await emptyCache(call);
  if (emptied.kind !== "done" || label === null) return emptied;
  const labelled = await tell(call, "/update_weight_version", { new_version: label });
  if (isMissing(labelled)) return { kind: "done" } as const;
  return labelled.kind === "done" ? await confirm(call, label) : halfDone(labelled);
}

async function transfer(call: Call, load: WeightLoad & { mode: "transfer" }): Promise<EngineReply> {
  // Its route of the same name takes any body, and loads nothing by it.
  const primeRl = await routeOf(call, OF_PRIME_RL);
  if (primeRl === "there") return cannot(call.engine, "it is prime-rl's own server: its mode is prime_rl");
  if (primeRl !== "missing") return primeRl;
  if (!load.initialized && load.init_info !== null) {
    const initialized = await initialize(call, load.init_info);
    if (initialized.kind !== "done") return advised(initialized, DEV_MODE);
  }
  const first = await transferOnce(call, load);
  if (load.init_info === null || !saysUninitialized(first)) return plainReply(first);
  const initialized = await initialize(call, load.init_info);
  return initialized.kind === "done" ? plainReply(await transferOnce(call, load)) : plainReply(initialized);
}

async function initialize(call: Call, init_info: object): Promise<Told> {
  return await tell(call, "/init_weight_transfer_engine", { init_info });
}

/** It has come back since, and knows nothing of the trainer's group. */
function saysUninitialized({ said = "" }: Told): boolean {
  return /(not (been )?|un)initiali[sz]ed|init_weight_transfer_engine/i.test(said);
}

async function transferOnce(call: Call, load: WeightLoad & { mode: "transfer" }): Promise<Told> {
  const start = await startUpdate(call);
  const { update_info, label } = load;
  if (isMissing(start)) {
    // Of before the three phases: the format is a member of the update, and its answer the end of it.
    const info = { is_checkpoint_format: true, ...update_info };
    const updated = await tell(call, "/update_weights", { update_info: info });
    return updated.kind === "done" ? await emptyCache(call) : { ...updated, ...advised(updated, DEV_MODE) };
  }
  if (start.kind !== "done" && !/already/i.test(start.said ?? "")) return start;
  const updated = await tell(call, "/update_weights", { update_info });
  if (updated.kind !== "done") return { ...updated, ...halfDone(updated) };
  const finished = await finishUpdate(call, label);
  if (finished.kind !== "done") return { ...finished, ...halfDone(finished) };
  const emptied = await emptyCache(call);
  return emptied.kind === "done" && label !== null ? await confirm(call, label) : emptied;
}

/** With the body of the engines that ask for it; later ones that refuse it are asked without. */
async function startUpdate(call: Call): Promise<Told> {
  const start = await tell(call, "/start_weight_update", { is_checkpoint_format: true });
  return isOtherShape(start) ? await tell(call, "/start_weight_update") : start;
}

async function finishUpdate(call: Call, label: string | null): Promise<Told> {
  if (label === null) return await tell(call, "/finish_weight_update");
  const finish = await tell(call, "/finish_weight_update", { weight_version: label });
  return isOtherShape(finish) ? await tell(call, "/finish_weight_update") : finish;
}

function isOtherShape({ kind, status, said = "" }: Told): boolean {
  const ofState = saysUninitialized({ kind: "done", said }) || /already|not (been )?started/i.test(said);
  return kind === "refused" && status !== undefined && OTHER_SHAPE.includes(status) && !ofState;
}

async function primeRl(call: Call, location: string): Promise<EngineReply> {
  const own = await routeOf(call, OF_PRIME_RL);
  if (own === "missing") {
    return cannot(call.engine, `it is not prime-rl's own server: it has no POST ${OF_PRIME_RL}`);
  }
  if (own !== "there") return own;
  // It empties its prefix cache by itself.
  return plainReply(await tell(call, "/update_weights", { weight_dir: location }));
}

/** Asked by a GET, which changes nothing: a route that takes only POST answers 405. */
async function routeOf({ engine, signal }: Call, path: string): Promise<"there" | "missing" | EngineReply> {
  const answer = await askEngine(engine, { side: "control", method: "GET", path, signal });
  if (answer.kind !== "answered") return { kind: "unreached", message: answer.message };
  if (answer.status === 405) return "there";
  if (answer.status === 404) return "missing";
  return { kind: "refused", message: refusalOf(engine, `GET ${path}`, answer) };
}

async function emptyCache(call: Call): Promise<EngineReply> {
  const reply = await tell(call, "/reset_prefix_cache");
  return reply.kind === "done" ? { kind: "done" } : halfDone(reply);
}

/** What it says that it serves now, where it says so. */
async function confirm({ engine, signal }: Call, label: string): Promise<EngineReply> {
  const answer = await askEngine(engine, { side: "control", method: "GET", path: "/weight_info", signal });
  if (answer.kind !== "answered") return { kind: "unknown", message: answer.message };
  if (answer.status === 404) return { kind: "done" };
  const says = member(answer.body, "weight_version");
  if (says === label) return { kind: "done" };
  const said = typeof says === "string" ? `weight_version ${JSON.stringify(says.slice(0, 100))}` : "no weight_version";
  const message = answer.status === 200 ? `${engine.name}: GET /weight_info answered ${said}, not ${label}` : "";
  return { kind: "unknown", message: message || refusalOf(engine, "GET /weight_info", answer) };
}

/** It has begun: whatever it answered, its weights are not the ones that were there for sure. */
function halfDone(reply: Told): EngineReply {
  return reply.kind === "done" ? { kind: "done" } : { kind: "unknown", message: reply.message };
}

function advised(reply: Told, advice: string): EngineReply {
  if (reply.kind === "done" || !isMissing(reply)) return plainReply(reply);
  return { kind: "refused", message: `${reply.message}: ${advice}` };
}

function cannot({ name }: Engine, why: string): EngineReply {
  return { kind: "refused", message: `${name}: ${why}` };
}
