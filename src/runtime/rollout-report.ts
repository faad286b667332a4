/** What a done rollout hands on: its trajectory as R2 text, and the report its run keeps. */
import { callsOf, ownTurns, type Rollout } from "../core/rollout.ts";
import type { Trajectory } from "../core/trajectory.ts";
import { sha256Hex } from "./secrets.ts";
import type { RolloutReport, RolloutSpec } from "./wire.ts";

export interface StorableTrajectory {
  readonly text: string;
  readonly digest: string;
  readonly trajectory: Trajectory;
}

export function storableTrajectory(trajectory: Trajectory): StorableTrajectory {
  const text = JSON.stringify(trajectory);
  return { text, digest: sha256Hex(text), trajectory };
}

export function reportOf(
  spec: RolloutSpec,
  rollout: Rollout,
  { text, digest, trajectory }: StorableTrajectory,
  inline: string | null,
): RolloutReport {
  const { group, slot, attempt, rollout_id, example_id, task_key } = spec;
  return {
    group,
    slot,
    attempt,
    rollout_id,
    example_id,
    task_key,
    failure: rollout.failure,
    cancelled: rollout.cancelled,
    error: rollout.error,
    stop_run: stopRunOf(rollout),
    digest,
    bytes: text.length,
    trajectory: inline,
    stop_condition: rollout.stop_condition,
    is_truncated: rollout.is_truncated,
    turns: ownTurns(rollout).length,
    calls: callsOf(rollout),
    limited: rollout.failed_calls.filter(({ status }) => status === 429).length,
    usage: trajectory.usage,
    started_at: trajectory.started_at,
    ended_at: trajectory.ended_at,
  };
}

/** What would end every other rollout of the run alike: a refused key (verifiers, divergence 3), code that is gone. */
function stopRunOf({ error, failure }: Rollout): RolloutReport["stop_run"] {
  if (error === null) return null;
  const { message } = error;
  if (failure === "environment_changed") return { code: failure, message };
  return error.error === "AuthenticationError" ? { code: "endpoint_unauthorized", message } : null;
}
