/**
 * An engine stopped and started again around a change of its weights. What it is asked in between: engine-load.ts.
 *
 * Invariants. Nothing throws, each call ends in its time, and each may be made again after a kill. A pause that was not
 * refused, and that reached somebody, is owed a resume, whatever was heard of it.
 */
import type { FleetUpdate } from "../contract/fleet.ts";
import { type Engine, type EngineReply, isMissing, plainReply, type Told, tellEngine } from "./engine-calls.ts";

export interface Pause {
  readonly pause: FleetUpdate["pause"];
  readonly timeout_ms: number;
}

/** With `wait`, done once the calls under way have ended. */
export async function pauseEngine(engine: Engine, { pause, timeout_ms }: Pause): Promise<EngineReply> {
  // Servers older than the modes know only the second member, and later ones take it for the same.
  const waits = pause === "wait" ? "&wait_for_inflight_requests=true" : "";
  const signal = AbortSignal.timeout(timeout_ms);
  const reply = await tellEngine(engine, { path: `/pause?mode=${pause}${waits}`, signal });
  return withoutRoute(reply);
}

export async function resumeEngine(engine: Engine, timeout_ms: number): Promise<EngineReply> {
  const reply = await tellEngine(engine, { path: "/resume", signal: AbortSignal.timeout(timeout_ms) });
  return withoutRoute(reply);
}

function withoutRoute(reply: Told): EngineReply {
  if (!isMissing(reply)) return plainReply(reply);
  const message = "message" in reply ? reply.message : "";
  return { kind: "refused", message: `${message}: start the engine with VLLM_SERVER_DEV_MODE=1` };
}
