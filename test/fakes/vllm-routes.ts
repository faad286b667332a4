/** What the routes that change an engine answer, by its age, and what they change: fake-vllm.ts serves them. */
export type Era = "a" | "b" | "c" | "d" | "e" | "prime_rl";

export type Body = Readonly<Record<string, unknown>>;
export type Answer = readonly [status: number, body?: unknown];
export type Handler = (body: Body, query: URLSearchParams) => Answer | Promise<Answer>;
/** By "METHOD /path". */
export type Routes = Readonly<Record<string, Handler>>;

/** Weights, whatever is asked for; or those that an update asks for. */
type Broadcast = string | null | ((update_info: Body) => string);

const ERAS = "abcde";

/** One engine, as it is now. Its weights are a name: that of the place they were loaded from. */
export class EngineState {
  /** Places where no checkpoint is. */
  readonly missing = new Set<string>();
  /** Weights by the name of their adapter. */
  readonly adapters = new Map<string, string>();
  /** Of each prefix, the weights that computed it. */
  readonly cache = new Map<string, string>();
  paused: "abort" | "wait" | "keep" | null = null;
  /** What GET /weight_info says; null: the truth. */
  saysWeights: string | null = null;
  transfer: "none" | "ready" | "started" | "received" = "none";
  label = "default";
  inFlight = 0;
  /** What the trainer's end of a transfer sends; null: nothing, and an update waits for ever. */
  broadcast: Broadcast = null;
  weights: string;
  readonly era: Era;
  #waiting: (() => void)[] = [];

  constructor(era: Era, weights: string) {
    [this.era, this.weights] = [era, weights];
  }

  load(weights: string): void {
    this.weights = weights;
    this.changed();
  }

  /** The trainer's end of a transfer begins to send. */
  trainerSends(weights: Broadcast): void {
    this.broadcast = weights;
    this.changed();
  }

  changed(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Resolves when something about it is other than it was. */
  change(): Promise<void> {
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** Flat in the older ones. */
  error(status: number, message: string, type = "BadRequestError"): Answer {
    const flat = this.era === "a" || this.era === "b";
    const error = { message, type, param: null, code: status };
    return [status, flat ? { object: "error", ...error } : { error }];
  }
}

/** Those that an engine of this age was started with. */
export function controlRoutes(engine: EngineState, { dev, lora }: { dev: boolean; lora: boolean }): Routes {
  const { era } = engine;
  const isFrom = (first: string) => dev && era !== "prime_rl" && ERAS.indexOf(era) >= ERAS.indexOf(first);
  return {
    ...(lora && loraRoutes(engine)),
    ...((dev || era === "prime_rl") && pauseRoutes(engine)),
    ...(isFrom("a") && devRoutes(engine)),
    ...(isFrom("b") && transferRoutes(engine)),
    ...(isFrom("c") && phaseRoutes(engine)),
    ...(isFrom("e") && versionRoutes(engine)),
    ...(era === "prime_rl" && primeRlRoutes(engine)),
  };
}

function loraRoutes(engine: EngineState): Routes {
  const inPlace = engine.era !== "a";
  const load: Handler = ({ lora_name, lora_path, load_inplace }) => {
    if (typeof lora_name !== "string" || typeof lora_path !== "string") {
      return engine.error(400, "Both 'lora_name' and 'lora_path' must be provided.", "InvalidUserInput");
    }
    if (engine.adapters.has(lora_name) && !(inPlace && load_inplace === true)) {
      const hint = " If you want to load the adapter in place, set 'load_inplace' to True.";
      const already = `The lora adapter '${lora_name}' has already been loaded.`;
      return engine.error(400, inPlace ? already + hint : already, "InvalidUserInput");
    }
    if (engine.missing.has(lora_path)) {
      return engine.error(404, `Loading lora ${lora_name} failed: No adapter found for ${lora_path}`, "NotFoundError");
    }
    engine.adapters.set(lora_name, lora_path);
    engine.changed();
    return [200, `Success: LoRA adapter '${lora_name}' added successfully.`];
  };
  const unload: Handler = ({ lora_name }) => {
    const gone = engine.adapters.delete(String(lora_name));
    if (gone) return [200, `Success: LoRA adapter '${lora_name}' removed successfully.`];
    return engine.error(404, `The lora adapter '${lora_name}' cannot be found.`, "NotFoundError");
  };
  return { "POST /v1/load_lora_adapter": load, "POST /v1/unload_lora_adapter": unload };
}

function pauseRoutes(engine: EngineState): Routes {
  return {
    "POST /pause": async (_, query) => {
      const mode = pauseMode(engine, query);
      if (mode === null)
        return [422, { detail: [{ loc: ["query", "mode"], msg: "Input should be 'abort', 'wait' or 'keep'" }] }];
      engine.paused = mode;
      engine.changed();
      while (mode !== "keep" && engine.paused === mode && engine.inFlight > 0) await engine.change();
      if (mode !== "keep") engine.cache.clear();
      return [200, { status: "paused" }];
    },
    "POST /resume": () => {
      engine.paused = null;
      engine.changed();
      return [200, { status: "resumed" }];
    },
    "GET /is_paused": () => [200, { is_paused: engine.paused !== null }],
  };
}

function pauseMode(engine: EngineState, query: URLSearchParams): EngineState["paused"] {
  if (engine.era === "prime_rl") return "keep";
  const waits = query.get("wait_for_inflight_requests") === "true" ? "wait" : "abort";
  const mode = engine.era === "a" ? waits : (query.get("mode") ?? waits);
  return mode === "abort" || mode === "wait" || mode === "keep" ? mode : null;
}

function devRoutes(engine: EngineState): Routes {
  return {
    "POST /collective_rpc": ({ method, kwargs }) => {
      if (method === undefined) return engine.error(400, "Missing 'method' in request body");
      const path = kwargs === undefined ? undefined : (kwargs as Body)["weights_path"];
      if (method !== "reload_weights" || typeof path !== "string") return engine.error(500, "Call failed.");
      if (engine.missing.has(path)) return engine.error(500, `Cannot find any model weights with \`${path}\``);
      engine.load(path);
      return [200, { results: [null] }];
    },
    "POST /reset_prefix_cache": () => {
      engine.cache.clear();
      return [200];
    },
  };
}

function transferRoutes(engine: EngineState): Routes {
  const phases = engine.era !== "b";
  return {
    "POST /init_weight_transfer_engine": ({ init_info }) => {
      if (init_info === undefined) return engine.error(400, "Missing 'init_info' in request body");
      engine.transfer = "ready";
      return [200, { message: "Weight transfer initialized" }];
    },
    "POST /update_weights": async ({ update_info }) => {
      if (update_info === undefined) return engine.error(400, "Missing 'update_info' in request body");
      const format = "is_checkpoint_format" in (update_info as Body);
      if (format === phases) return engine.error(400, "is_checkpoint_format is not where it belongs");
      if (engine.transfer === "none") return engine.error(400, "Weight transfer engine is not initialized.");
      if (phases && engine.transfer === "ready") {
        return engine.error(400, "Weight update has not been started: call start_weight_update first.");
      }
      const sent = await sentBy(engine, update_info as Body);
      engine.load(phases ? `parts of ${sent}` : sent);
      if (phases) engine.transfer = "received";
      return [200, { message: "Weights updated" }];
    },
  };
}

async function sentBy(engine: EngineState, update_info: Body): Promise<string> {
  while (engine.broadcast === null) await engine.change();
  const { broadcast } = engine;
  return typeof broadcast === "string" ? broadcast : broadcast(update_info);
}

function phaseRoutes(engine: EngineState): Routes {
  return {
    "POST /start_weight_update": (body) => {
      const given = "is_checkpoint_format" in body;
      if (engine.era === "c" && !given) return [422, { detail: [{ loc: ["body"], msg: "Field required" }] }];
      if (engine.era === "e" && given)
        return [422, { detail: [{ loc: ["body"], msg: "Extra inputs are not permitted" }] }];
      if (engine.transfer === "none") return engine.error(400, "Weight transfer engine is not initialized.");
      if (engine.transfer !== "ready") return engine.error(400, "A weight update has already been started.");
      engine.transfer = "started";
      return [200, { message: "Weight update started" }];
    },
    "POST /finish_weight_update": ({ weight_version }) => {
      if (engine.transfer !== "received") return engine.error(400, "Weight update has not been started.");
      engine.transfer = "ready";
      engine.load(engine.weights.replace(/^parts of /, ""));
      if (engine.era === "e" && typeof weight_version === "string") engine.label = weight_version;
      return [200, { message: "Weight update finished" }];
    },
  };
}

function versionRoutes(engine: EngineState): Routes {
  return {
    "GET /weight_info": () => [200, { weight_version: engine.saysWeights ?? engine.label }],
    "POST /update_weight_version": ({ new_version }) => {
      engine.label = String(new_version);
      return [200, { success: true, new_version }];
    },
  };
}

function primeRlRoutes(engine: EngineState): Routes {
  return {
    "GET /liveness": () => [200, { status: "ok" }],
    "POST /init_broadcaster": () => [200, { status: "ok" }],
    "POST /update_weights": ({ weight_dir }) => {
      // Whatever is sent, it loads by `weight_dir` alone.
      if (typeof weight_dir !== "string" || engine.missing.has(weight_dir)) return [500, "Internal Server Error"];
      engine.load(weight_dir);
      engine.cache.clear();
      return [200, { status: "ok" }];
    },
  };
}
