/** What a done rollout hands on: its trajectory as R2 text, and the report its run keeps. */
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
import type { Trajectory } from "../../contract/trajectory.ts";
import { offeredTools } from "../../core/rollout/harness.ts";
import { callsOf, ownTurns, type Rollout, trajectoryOf, usageOf } from "../../core/rollout/rollout.ts";
import { taskText } from "../../core/rollout/task-text.ts";
import { pinnedEnvironment } from "../environment/environments.ts";
import { sha256Hex } from "../kit/secrets.ts";
import { latenciesOf } from "../messages/latency.ts";
import type { RolloutReport, RolloutSpec } from "../messages/wire.ts";
import { askedTools } from "../run/training/asked-tools.ts";

export interface StorableTrajectory {
  readonly text: string;
  readonly digest: string;
  /** Of what was said: equal for rollouts that say the same after the same prompt. */
  readonly said: string;
}

/** Of a rollout whose trajectory cannot be stored. */
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
  const unmetered = turns.filter(({ usage }) => usage === null).length + (rollout.unmetered ?? 0);
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
    ...(turns.length > 0 && { latencies: latenciesOf(turns) }),
    usage: usageOf(rollout),
    ...(unmetered > 0 && { unmetered }),
    started_at: rollout.started_at,
    ended_at: rollout.ended_at ?? rollout.started_at,
  };
}

export function textOfTask({ prompt }: Pick<Rollout, "prompt">): Pick<RolloutReport, "task_text"> {
  const task_text = taskText(prompt);
  return task_text === null ? {} : { task_text };
}

/**
 * In place of a report that cannot be taken: the same end without what the rollout left. One that was cancelled stays so;
 * any other is the platform's failure. Everything in it is of a bounded size.
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
 * What a done rollout leaves, with the tools that the model was offered: none where it was never asked, or where the code
 * that offered them is gone. Where that code fails now, the rollout keeps its outcome, and the fault is noted.
 */
export async function finishedTrajectory(spec: RolloutSpec, rollout: Rollout): Promise<Trajectory> {
  const offered = rollout.turns.length === 0 ? [] : await toolsOffered(spec, rollout);
  if (!("error" in offered)) return trajectoryOf(rollout, offered);
  return trajectoryOf({ ...rollout, cleanup_errors: [...rollout.cleanup_errors, offered] });
}

async function toolsOffered(spec: RolloutSpec, rollout: Rollout): Promise<readonly ToolDefinition[] | SerializedError> {
  try {
    const environment = await pinnedEnvironment(spec);
    if (environment === null) return [];
    const offered = offeredTools(environment, rollout);
    return "error" in offered ? offered : askedTools(spec, offered);
  } catch (thrown) {
    if (!isError(thrown, EnvError)) throw thrown;
    return serializeError(thrown);
  }
}

/** What would end every other rollout of the run alike: a refused key (D3), code that is gone. A 403: run/refusals.ts. */
function stopRunOf({ error, failure }: Rollout): RolloutReport["stop_run"] {
  if (error === null) return null;
  const { message } = shortError(error);
  if (failure === "environment_changed") return { code: failure, message };
  return error.error === AuthenticationError.name ? { code: "endpoint_unauthorized", message } : null;
}
