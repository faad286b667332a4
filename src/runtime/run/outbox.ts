/**
 * What a run owes D1: its finished rollouts, in batches, and its own row. D1 is a projection; a row written twice stays
 * as it was first written, so a drain cut short is simply done again.
 */
import { insertRollouts, type NewRollout } from "../../db/rollouts.ts";
import { updateRun } from "../../db/runs.ts";
import type { LiveView, RolloutEntry } from "../contract/run-records.ts";
import type { RunSpec } from "../contract/wire.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import { DRAIN_ROWS } from "./alarm.ts";
import { metricsOf } from "./report-sums.ts";
import type { RunStore } from "./store.ts";

/** One batch of rollouts, then the run's row when nothing is left. */
export async function drain(
  env: Env,
  store: RunStore,
  spec: RunSpec,
  view: () => LiveView,
  subrequests: Subrequests,
): Promise<void> {
  const rows = store.undrained(DRAIN_ROWS);
  if (rows.length > 0) {
    const records = rows.map((row) => recordOf(spec, row));
    await subrequests.fetch(() => insertRollouts(env.DB, spec.scope, records));
    store.transaction(() => {
      const written = store.setDrained(rows);
      const head = store.head();
      store.saveHead({ ...head, drained: head.drained + written });
    });
  }
  if (store.head().row_current) return;
  const { status, error, counts, report, dead_letters, settled_at } = view();
  const written = store.head();
  const changes = { status, error, counts, report, dead_letters, finished_at: settled_at };
  await subrequests.fetch(() => updateRun(env.DB, spec.scope, spec.run_id, changes));
  // Only now, and only if nothing changed meanwhile: a kill in between must leave the row to be written again.
  if (store.head() === written) store.saveHead({ ...written, row_current: true });
}

function recordOf(spec: RunSpec, row: RolloutEntry): NewRollout {
  return {
    id: row.id,
    run_id: spec.run_id,
    group_index: row.group_index,
    slot: row.slot,
    attempt: row.attempt,
    example_id: row.example_id ?? row.group_index,
    task_key: row.task_key ?? "",
    outcome: row.outcome ?? "failed",
    reason: row.reason,
    reward: row.reward,
    metrics: metricsOf(row),
    stop_condition: row.stop_condition,
    is_truncated: row.is_truncated === 1,
    turns: row.turns,
    calls: row.calls,
    prompt_tokens: row.prompt_tokens,
    completion_tokens: row.completion_tokens,
    judge_calls: row.judge_calls,
    judge_prompt_tokens: row.judge_prompt_tokens,
    judge_completion_tokens: row.judge_completion_tokens,
    judge_micros: row.judge_micros,
    digest: row.digest,
    superseded_by: row.superseded_by,
    started_at: row.started_at,
    ended_at: row.ended_at ?? 0,
  };
}
