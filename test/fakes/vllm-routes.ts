/** The routes that change an engine, by its version: their answers and their effects. fake-vllm.ts serves them. */
export type Era = "a" | "b" | "c" | "prime_rl";

export type Body = Readonly<Record<string, unknown>>;
export type Answer = readonly [status: number, body?: unknown];
export type Handler = (body: Body, query: URLSearchParams) => Answer | Promise<Answer>;
/** Handlers by "METHOD /path". */
export type Routes = Readonly<Record<string, Handler>>;

/** The current state of one engine. Its weights are a name: the path they were loaded from. */
export class EngineState {
  /** Paths without a checkpoint. */
  readonly missing = new Set<string>();
  /** Weights by the name of their adapter. */
  readonly adapters = new Map<string, string>();
  /** The weights that computed each prefix. */
  readonly cache = new Map<string, string>();
  paused: "abort" | "wait" | "keep" | null = null;
  /** The answer of GET /weight_info; null for the truth. */
  reportsWeights: string | null = null;
  label = "default";
  inFlight = 0;
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

  changed(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Resolves when its state changes. */
  change(): Promise<void> {
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** Flat in the oldest version. */
  error(status: number, message: string, type = "BadRequestError"): Answer {
    const error = { message, type, param: null, code: status };
    return [status, this.era === "a" ? { object: "error", ...error } : { error }];
  }
}

/** The routes of an engine of this version and these flags. */
export function controlRoutes(engine: EngineState, { dev, lora }: { dev: boolean; lora: boolean }): Routes {
  const { era } = engine;
  return {
    ...(lora && loraRoutes(engine)),
    ...((dev || era === "prime_rl") && pauseRoutes(engine)),
    ...(dev && era !== "prime_rl" && devRoutes(engine)),
    ...(dev && era === "c" && versionRoutes(engine)),
    ...(era === "prime_rl" && primeRlRoutes(engine)),
  };
}

function loraRoutes(engine: EngineState): Routes {
  const load: Handler = ({ lora_name, lora_path }) => {
    if (typeof lora_name !== "string" || typeof lora_path !== "string") {
      return engine.error(400, "Both 'lora_name' and 'lora_path' must be provided.", "InvalidUserInput");
    }
    if (engine.adapters.has(lora_name)) {
      const hint = engine.era === "a" ? "" : " If you want to load the adapter in place, set 'load_inplace' to True.";
      return engine.error(400, `The lora adapter '${lora_name}' has already been loaded.${hint}`, "InvalidUserInput");
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

function versionRoutes(engine: EngineState): Routes {
  return {
    "GET /weight_info": () => [200, { weight_version: engine.reportsWeights ?? engine.label }],
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
      // It loads by `weight_dir` alone, whatever else is sent.
      if (typeof weight_dir !== "string" || engine.missing.has(weight_dir)) return [500, "Internal Server Error"];
      engine.load(weight_dir);
      engine.cache.clear();
      return [200, { status: "ok" }];
    },
  };
}
