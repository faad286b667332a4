/**
 * Pauses and resumes an engine around a change of its weights. The change itself: engine-load.ts.
 *
 * Invariants. Nothing throws, each call ends within its timeout, and each may be repeated after a kill. A pause that
 * may have reached the engine and was not refused must be followed by a resume, whatever the engine answered.
 */
import type { FleetUpdate } from "../contract/fleet.ts";
import { type Engine, type EngineReply, type FullReply, isMissing, plainReply, sendToEngine } from "./engine-calls.ts";

export interface Pause {
  readonly pause: FleetUpdate["pause"];
  readonly timeout_ms: number;
}

/** With `wait`, it is done when the calls in flight have ended. */
export async function pauseEngine(engine: Engine, { pause, timeout_ms }: Pause): Promise<EngineReply> {
  // Servers older than the `mode` parameter accept only the second parameter; newer ones treat both alike.
  const waits = pause === "wait" ? "&wait_for_inflight_requests=true" : "";
  const signal = AbortSignal.timeout(timeout_ms);
  const reply = await sendToEngine(engine, { path: `/pause?mode=${pause}${waits}`, signal });
  return withoutRoute(reply);
}

export async function resumeEngine(engine: Engine, timeout_ms: number): Promise<EngineReply> {
  const reply = await sendToEngine(engine, { path: "/resume", signal: AbortSignal.timeout(timeout_ms) });
  return withoutRoute(reply);
}

function withoutRoute(reply: FullReply): EngineReply {
  if (!isMissing(reply)) return plainReply(reply);
  const message = "message" in reply ? reply.message : "";
  return { kind: "refused", message: `${message}: start the engine with VLLM_SERVER_DEV_MODE=1` };
}
