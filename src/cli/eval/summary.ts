/** What `rollcall eval --json` prints of an ended run. Scripts depend on every name here. */
import type { RunView } from "../../contract/run.ts";
import { sum } from "../terminal/format.ts";
import { type Judgement, NOT_JUDGED } from "./gates.ts";

const NO_JUDGES = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, calls: 0 };

export function evalSummary(
  run: RunView,
  seconds: number,
  resultsPath: string | null,
  { gates, comparison }: Judgement = NOT_JUDGED,
) {
  const { counts, report } = run;
  const { judge = NO_JUDGES, ...policy } = report.usage;
  return {
    run_id: run.id,
    status: run.status,
    error: run.error,
    environment: `${run.environment.id}@${run.environment.version}`,
    model: run.model,
    num_examples: run.num_examples,
    rollouts_per_example: run.rollouts_per_example,
    counts: {
      planned: counts.planned,
      pending: counts.pending,
      in_flight: counts.in_flight,
      scored: counts.scored,
      unscored: sum(counts.unscored),
      failed: sum(counts.failed),
      cancelled: sum(counts.cancelled),
    },
    failed_by_class: counts.failed,
    cancelled_by_reason: counts.cancelled,
    reward: report.reward,
    metrics: report.metrics,
    pass_at_k: report.pass_at_k,
    pass_hat_k: report.pass_hat_k,
    usage: { policy, judge },
    turns: report.turns,
    seconds: Math.round(seconds * 1000) / 1000,
    results_path: resultsPath,
    gates,
    comparison,
  };
}
