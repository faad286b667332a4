/** What a done rollout hands on: its trajectory as R2 text, and the report its run keeps. */
import { toolDefinitions } from "../core/harness.ts";
import type { ToolDefinition } from "../core/messages.ts";
import { callsOf, ownTurns, type Rollout } from "../core/rollout.ts";
import type { Trajectory } from "../core/trajectory.ts";
import { pinnedEnvironment } from "./environments.ts";
import { sha256Hex } from "./secrets.ts";
import type { RolloutReport, RolloutSpec } from "./wire.ts";

export interface StorableTrajectory {
  readonly text: string;
  readonly digest: string;
  /** Of what was said: equal for rollouts that say the same after the same prompt. */
  readonly said: string;
  readonly trajectory: Trajectory;
}

export function storableTrajectory(trajectory: Trajectory): StorableTrajectory {
  const text = JSON.stringify(trajectory);
  const { prompt, completion } = trajectory;
  const said = sha256Hex(JSON.stringify([prompt, completion]));
  return { text, digest: sha256Hex(text), said, trajectory };
}

export function reportOf(
  spec: RolloutSpec,
  rollout: Rollout,
  { text, digest, said, trajectory }: StorableTrajectory,
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
    said,
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

/** None where the model was never asked, or where the code that offered them is gone. */
export async function toolsOffered(
  spec: RolloutSpec,
  rollout: Rollout,
): Promise<readonly ToolDefinition[]> {
  if (rollout.turns.length === 0) return [];
  const environment = await pinnedEnvironment(spec.environment, spec.environment_args);
  return environment === null ? [] : toolDefinitions(environment, rollout);
}

/** What would end every other rollout of the run alike: a refused key (verifiers, divergence 3), code that is gone. */
function stopRunOf({ error, failure }: Rollout): RolloutReport["stop_run"] {
  if (error === null) return null;
  const { message } = error;
  if (failure === "environment_changed") return { code: failure, message };
  return error.error === "AuthenticationError" ? { code: "endpoint_unauthorized", message } : null;
}
