/** The answer to a repeated `finish` whose rollout has ended and whose object was freed: it comes from what is stored. */
import { textOf } from "../contract/messages.ts";
import { NOTHING_REPORTED, type Trajectory } from "../contract/trajectory.ts";
import type { RolloutAccess } from "../kernel/kit/secrets.ts";
import type { AgentFinish, FinishReply } from "../kernel/messages/agent-wire.ts";
import { findRollout, finishedTrajectory } from "../kernel/service/read-rollouts.ts";

/** `unknown`: no rollout of this id has ended. */
export async function storedEnd(
  env: Env,
  { scope, rollout_id }: RolloutAccess,
  finish: AgentFinish,
): Promise<FinishReply> {
  const found = await findRollout(env, scope, rollout_id);
  if (!found.ok) return "unknown";
  const { run, record, object } = found.value;
  const { outcome, reason, finish_seq } = record.entry;
  if (finish_seq === null) return "unknown";
  const trajectory = await finishedTrajectory(env, { scope, run_id: run.id }, record, object);
  if (trajectory !== null && isEndedBy(trajectory, finish)) return "ended";
  return { over: reason === null ? `${outcome}` : `${outcome}: ${reason}` };
}

/** Whether the rollout ended with this report. States are not compared: hooks of the environment may change them. */
export function isEndedBy(
  { cancelled, error, reported, stop_condition, final_env_response, turns }: Trajectory,
  finish: AgentFinish,
): boolean {
  if (cancelled !== null) return false;
  if (finish.error !== null) return error?.error === finish.error.error && error.message === finish.error.message;
  if (error !== null || isOther(reported, finish.reported)) return false;
  const isCut = stop_condition === "max_turns_reached" || stop_condition === "max_size_reached";
  if (!isCut && stop_condition !== (finish.stop_condition ?? "agent_completed")) return false;
  const answers = [textOf(final_env_response?.[0]), textOf(turns.at(-1)?.completion)];
  const { answer } = finish;
  if (answer === null) return final_env_response === null;
  return answers.some((said) => said?.trim() === answer.trim()) || stop_condition === "max_size_reached";
}

function isOther(reported: Trajectory["reported"], asked: AgentFinish["reported"]): boolean {
  return JSON.stringify(reported ?? NOTHING_REPORTED) !== JSON.stringify(asked ?? NOTHING_REPORTED);
}
