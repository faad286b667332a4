/** The faults of an engine in a fleet: the update modes they apply to, and what the fleet must show. */
import { UPDATE_MODES, type UpdateMode } from "../../src/contract/fleet.ts";
import type { FakeVllm } from "../fakes/fake-vllm.ts";

export interface Fault {
  readonly name: string;
  /** When it starts: when new weights are published, or once the fleet serves them. */
  readonly at: "update" | "idle";
  readonly modes: readonly UpdateMode[];
  /** Set if only engines of this age report what the fault needs. */
  readonly era?: "c";
  readonly strike: (engine: FakeVllm, mode: UpdateMode) => void;
  /** Called once the fault was shown, or after a while if nothing is shown. */
  readonly heal: (engine: FakeVllm, mode: UpdateMode) => void;
  /** The reason for the outage in GET /v1/fleets/{id}; null: the engine stays in. */
  readonly shown: RegExp | null;
}

const CHAT = "/v1/chat/completions";
const ALWAYS = Number.POSITIVE_INFINITY;
const ALL: readonly UpdateMode[] = UPDATE_MODES;
const DRIVEN = ALL.filter((mode) => mode !== "reported");
const PAUSED = DRIVEN.filter((mode) => mode !== "lora_versioned");

export function loadRoute(mode: UpdateMode): string {
  if (mode === "reload") return "/collective_rpc";
  return mode === "prime_rl" ? "/update_weights" : "/v1/load_lora_adapter";
}

function mendLoad(engine: FakeVllm, mode: UpdateMode): void {
  engine.mend(loadRoute(mode));
}

const none = () => undefined;
const held = new WeakMap<FakeVllm, () => void>();

export const FAULTS: readonly Fault[] = [
  { name: "nothing befalls it", at: "update", modes: ALL, strike: none, heal: none, shown: null },
  {
    name: "hangs on the load",
    ...{ at: "update", modes: DRIVEN, heal: mendLoad, shown: /no answer in time/ },
    strike: (engine, mode) => engine.breakRoute(loadRoute(mode), "hang", ALWAYS),
  },
  {
    name: "fails after half of the load",
    ...{ at: "update", modes: DRIVEN, heal: mendLoad, shown: /answered 500/ },
    strike: (engine, mode) => engine.breakRoute(loadRoute(mode), "fail", 2),
  },
  {
    name: "dies in the load, and comes back with old weights",
    ...{ at: "update", modes: DRIVEN, shown: /load: |not resumed|GET \/models|probe: / },
    strike: (engine, mode) => engine.breakRoute(loadRoute(mode), "die"),
    heal: (engine, mode) => {
      mendLoad(engine, mode);
      engine.restart();
    },
  },
  {
    name: "loads, and its answer is lost",
    ...{ at: "update", modes: DRIVEN, heal: none, shown: /load: / },
    strike: (engine, mode) => engine.breakRoute(loadRoute(mode), "lost"),
  },
  {
    name: "says that it loaded an adapter, and did not",
    ...{ at: "update", modes: ["lora_versioned"], heal: mendLoad, shown: /does not list/ },
    strike: (engine, mode) => engine.breakRoute(loadRoute(mode), "lie", ALWAYS),
  },
  {
    name: "hangs on the pause",
    ...{ at: "update", modes: PAUSED, shown: /pause: .*no answer in time/ },
    strike: (engine) => engine.breakRoute("/pause", "hang", ALWAYS),
    heal: (engine) => engine.mend("/pause"),
  },
  {
    name: "pauses, and its answer is lost",
    ...{ at: "update", modes: PAUSED, heal: none, shown: /pause: / },
    strike: (engine) => engine.breakRoute("/pause", "lost"),
  },
  {
    name: "hangs on the resume",
    ...{ at: "update", modes: PAUSED, shown: /was not resumed/ },
    strike: (engine) => engine.breakRoute("/resume", "hang", ALWAYS),
    heal: (engine) => engine.mend("/resume"),
  },
  {
    name: "ends its calls slowly",
    ...{ at: "update", modes: ALL, shown: null },
    strike: (engine) => void held.set(engine, engine.hold()),
    heal: (engine) => held.get(engine)?.(),
  },
  {
    name: "hangs on calls",
    ...{ at: "update", modes: ALL, shown: null },
    // Too few failures to open the circuit, which another test covers.
    strike: (engine) => engine.breakRoute(CHAT, "hang", 3),
    heal: (engine) => engine.mend(CHAT),
  },
  {
    name: "answers 404 on a look",
    ...{ at: "idle", modes: ALL, shown: /GET \/models answered 404/ },
    strike: (engine) => engine.breakRoute("/v1/models", { status: 404, body: { detail: "Not Found" } }, ALWAYS),
    heal: (engine) => engine.mend("/v1/models"),
  },
  {
    name: "is started anew with old weights",
    ...{
      at: "idle",
      modes: ALL,
      heal: none,
      shown: /^was out|started anew|was started with|its weights are changed|404|report/,
    },
    strike: (engine) => engine.restart(),
  },
  {
    name: "lies about its version",
    ...{ at: "idle", modes: ALL, era: "c", shown: /it reports|answered weight_version/ },
    strike: (engine) => {
      engine.reportsWeights = "777";
    },
    // After somebody else changed its weights, the engine is restarted, unless updates replace all of its weights.
    heal: (engine, mode) => {
      engine.reportsWeights = null;
      if (mode === "lora_versioned") engine.restart();
    },
  },
];
