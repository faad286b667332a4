/** A run by hand, on an object's real storage: its spec, and the reports of rollouts and scorers. */
import type { ScoreRecord } from "../../src/core/rubrics/score.ts";
import type { RolloutEntry } from "../../src/kernel/messages/run-records.ts";
import type { RolloutReport, RolloutSlot, RunSpec, ScoredMember } from "../../src/kernel/messages/wire.ts";

export const RUN_SPEC: RunSpec = {
  scope: { orgId: "org", projectId: "pj" },
  run_id: "run",
  environment: { id: "e", version: "1.0.0", digest: "" },
  environment_args: {},
  dataset: { kind: "generated", key: null, length: null },
  model: "m",
  endpoint_id: "ep",
  sampling: {},
  limits: { call_timeout_s: 600, max_retries: 2 },
  ...{ seed: 0, shuffle: false, num_examples: 1, rollouts_per_example: 1, max_concurrent: 8 },
  ...{ min_scored: 0.5, whole_groups: false, created_at: 0 },
};

export function idOf({ group, slot, attempt }: RolloutSlot): string {
  return `ro_${group}_${slot}_${attempt}`;
}

function placeOf({ group_index: group, slot, attempt }: RolloutEntry): RolloutSlot {
  return { group, slot, attempt };
}

export function reportOf(
  row: RolloutEntry,
  { failure, cancelled }: Pick<RolloutReport, "failure" | "cancelled">,
): RolloutReport {
  return {
    ...placeOf(row),
    ...{ rollout_id: row.id, example_id: row.group_index, task_key: "k", failure, cancelled },
    ...{ error: null, stop_run: null, digest: `d${row.seq}`, bytes: 9, trajectory: "{}" },
    ...{ stop_condition: "x", is_truncated: false, turns: 1, calls: 1, started_at: 1, ended_at: 2 },
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  };
}

export function scoreOf(row: RolloutEntry, reward: number | null): ScoredMember {
  const unscored = reward === null ? "scorer" : null;
  const record: ScoreRecord = {
    ...{ rollout_id: row.id, reward, scores: [], scoring_errors: [], unscored },
  };
  return { ...placeOf(row), record };
}
