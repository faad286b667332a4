/**
 * An engine stopped and started again around a change of its weights. What it is asked in between: engine-load.ts.
 *
 * Invariants. Nothing throws, each call ends in its time, and each may be made again after a kill. A pause that was not
 * refused, and that reached somebody, is owed a resume, whatever was heard of it.
 */
import type { FleetUpdate, UpdateMode } from "../contract/fleet.ts";
import { isRecord } from "../contract/json.ts";
import { type Engine, type EngineReply, isMissing, plainReply, type Told, tellEngine } from "./engine-calls.ts";

export type EnginePhase = "pause" | "update" | "resume";

const AROUND: readonly EnginePhase[] = ["pause", "update", "resume"];
/** What a change of weights takes, in order. A versioned adapter disturbs nobody; `reported` is somebody else's doing. */
export const PHASES: Readonly<Record<UpdateMode, readonly EnginePhase[]>> = {
  lora_versioned: ["update"],
  lora_in_place: AROUND,
  reload: AROUND,
  transfer: AROUND,
  prime_rl: AROUND,
  reported: [],
};

export interface Pause {
  readonly mode: UpdateMode;
  readonly pause: FleetUpdate["pause"];
  readonly timeout_ms: number;
}

/** With `wait`, done once the calls under way have ended. */
export async function pauseEngine(engine: Engine, { mode, pause, timeout_ms }: Pause): Promise<EngineReply> {
  // Servers of before the modes know only the second member, and later ones take it for the same.
  const waits = pause === "wait" ? "&wait_for_inflight_requests=true" : "";
  const signal = AbortSignal.timeout(timeout_ms);
  const reply = await tellEngine(engine, { path: `/pause?mode=${pause}${waits}`, signal });
  return withoutRoute(reply, mode);
}

export async function resumeEngine(engine: Engine, { mode, timeout_ms }: Omit<Pause, "pause">): Promise<EngineReply> {
  const reply = await tellEngine(engine, { path: "/resume", signal: AbortSignal.timeout(timeout_ms) });
  return withoutRoute(reply, mode);
}

/** An adapter can be loaded beside calls; nothing else can. */
function withoutRoute(reply: Told, mode: UpdateMode): EngineReply {
  if (!isMissing(reply)) return plainReply(reply);
  if (mode === "lora_in_place") return { kind: "done" };
  const message = "message" in reply ? reply.message : "";
  return { kind: "refused", message: `${message}: start the engine with VLLM_SERVER_DEV_MODE=1` };
}

type Info = Readonly<Record<string, unknown>>;

/** What one engine is initialised with: `by_replica`, under its name, goes over what holds for all. */
export function initInfoOf(init_info: Info | undefined, replica: string): Info | null {
  if (init_info === undefined) return null;
  const { by_replica, ...shared } = init_info;
  const own = isRecord(by_replica) && Object.hasOwn(by_replica, replica) ? by_replica[replica] : undefined;
  return isRecord(own) ? { ...shared, ...own } : shared;
}
