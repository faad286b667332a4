/** The results of a finished rollout: its trajectory as text for R2, and the report for its run. */
import {
  AuthenticationError,
  EnvError,
  InfraError,
  isError,
  type SerializedError,
  serializeError,
  shortError,
} from "../../contract/errors.ts";
import type { ToolDefinition } from "../../contract/messages.ts";
import type { ReusedUsage } from "../../contract/report.ts";
import { addUsage, type Trajectory, type Turn } from "../../contract/trajectory.ts";
import {
  callsOf,
  isPaid,
  lastTools,
  ownTurns,
  type Rollout,
  trajectoryOf,
  usageOf,
} from "../../core/rollout/rollout.ts";
import { taskText } from "../../core/rollout/task-text.ts";
import { pinnedEnvironment } from "../environment/environments.ts";
import { toolsFor } from "../environment/offered-tools.ts";
import { sha256Hex } from "../kit/secrets.ts";
import { latenciesOf } from "../messages/latency.ts";
import type { RolloutReport, RolloutSpec } from "../messages/wire.ts";
import { askedTools } from "../run/training/asked-tools.ts";

export interface StorableTrajectory {
  readonly text: string;
  readonly digest: string;
  /** Hash of prompt and completion: equal for rollouts with the same completion after the same prompt. */
  readonly said: string;
}

/** For a rollout whose trajectory cannot be stored. */
export const NOTHING_LEFT: StorableTrajectory = { text: "", digest: "", said: "" };

export function storableTrajectory(trajectory: Trajectory): StorableTrajectory {
  const text = JSON.stringify(trajectory);
  const { prompt, completion } = trajectory;
  const said = sha256Hex(JSON.stringify([prompt, completion]));
  return { text, digest: sha256Hex(text), said };
}

export function reportOf(
  spec: RolloutSpec,
  rollout: Rollout,
  { text, digest, said }: StorableTrajectory,
  inline: string | null,
): RolloutReport {
  const { group, slot, attempt, rollout_id, example_id, task_key, member } = spec;
  const turns = ownTurns(rollout);
  const paid = turns.filter(isPaid);
  const unmetered = paid.filter(({ usage }) => usage === null).length + (rollout.unmetered ?? 0);
  return {
    group,
    slot,
    attempt,
    rollout_id,
    example_id,
    task_key,
    ...textOfTask(rollout),
    ...(member !== undefined && { member }),
    failure: rollout.failure,
    cancelled: rollout.cancelled,
    error: rollout.error && shortError(rollout.error),
    stop_run: stopRunOf(rollout),
    digest,
    said,
    bytes: text.length,
    trajectory: inline,
    stop_condition: rollout.stop_condition,
    is_truncated: rollout.is_truncated,
    turns: turns.length,
    calls: callsOf(rollout),
    limited: rollout.failed_calls.filter(({ status }) => status === 429).length,
    ...(paid.length < turns.length && { reused: reusedBy(turns.filter((turn) => !isPaid(turn))) }),
    ...(paid.length > 0 && { latencies: latenciesOf(paid) }),
    usage: usageOf(rollout),
    ...(unmetered > 0 && { unmetered }),
    started_at: rollout.started_at,
    ended_at: rollout.ended_at ?? rollout.started_at,
  };
}

function reusedBy(turns: readonly Turn[]): ReusedUsage {
  return { turns: turns.length, tokens: addUsage(turns).total_tokens };
}

export function textOfTask({ prompt }: Pick<Rollout, "prompt">): Pick<RolloutReport, "task_text"> {
  const task_text = taskText(prompt);
  return task_text === null ? {} : { task_text };
}

/**
 * Replaces a report that the run refuses: the same end without the trajectory. A cancelled rollout stays cancelled; any
 * other becomes a failure of the platform. All its fields have a bounded size.
 */
export function bareReport(report: RolloutReport, why: string): RolloutReport {
  return {
    ...report,
    failure: report.cancelled === null ? "platform" : null,
    error: serializeError(new InfraError(why)),
    ...{ digest: null, bytes: 0, trajectory: null },
    stop_condition: "has_error",
  };
}

/**
 * The trajectory of a finished rollout, with the tools that were offered to the model: none if the model was never
 * called, or the code that offered them is not deployed. If that code fails now, the outcome stays and the fault is
 * recorded.
 */
export async function finishedTrajectory(env: Env, spec: RolloutSpec, rollout: Rollout): Promise<Trajectory> {
  if (spec.agent !== undefined) return trajectoryOf(rollout, lastTools(rollout.turns));
  const offered = rollout.turns.length === 0 ? [] : await toolsOffered(env, spec, rollout);
  if (!("error" in offered)) return trajectoryOf(rollout, offered);
  return trajectoryOf({ ...rollout, cleanup_errors: [...rollout.cleanup_errors, offered] });
}

async function toolsOffered(
  env: Env,
  spec: RolloutSpec,
  rollout: Rollout,
): Promise<readonly ToolDefinition[] | SerializedError> {
  try {
    const environment = await pinnedEnvironment(env, spec);
    if (environment === null) return [];
    const offered = await toolsFor(environment, rollout);
    return "error" in offered ? offered : askedTools(spec, offered);
  } catch (thrown) {
    if (!isError(thrown, EnvError)) throw thrown;
    return serializeError(thrown);
  }
}

/** Errors that would end every other rollout of the run: a refused key, missing code. For a 403 see run/refusals.ts. */
function stopRunOf({ error, failure }: Rollout): RolloutReport["stop_run"] {
  if (error === null) return null;
  const { message } = shortError(error);
  if (failure === "environment_changed") return { code: failure, message };
  return error.error === AuthenticationError.name ? { code: "endpoint_unauthorized", message } : null;
}
