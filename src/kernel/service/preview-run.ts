/** Estimates the cost of a run. The request is checked like that of a real run, and nothing is stored. */
import type { RunRequest } from "../../contract/run.ts";
import type { RunPreview } from "../../contract/run-preview.ts";
import type { Scope } from "../../contract/scope.ts";
import type { TrainingSpec } from "../../contract/training-request.ts";
import { expectedOf, type PastRun, tokenMicros } from "../../core/costs/expected.ts";
import { databaseOf } from "../db/database.ts";
import { pastRuns } from "../db/past-runs.ts";
import type { RunRow } from "../db/schema.ts";
import type { Result } from "../messages/refusal.ts";
import { charges } from "../run/charges.ts";
import { resolveRun, wantedBy } from "./resolve/resolve-run.ts";

/** The number of past runs that are read. */
const MOST_RUNS = 20;

export async function previewRun(env: Env, scope: Scope, asked: RunRequest, now: number): Promise<Result<RunPreview>> {
  const resolved = await resolveRun(env, scope, wantedBy(asked), now);
  if (!resolved.ok) return resolved;
  const { play, settings, endpoint, judges, training, money } = resolved.value;
  const { model, rollouts_per_example } = settings;
  const { prices } = money;
  const rows = await pastRuns(databaseOf(env), scope, { environment: play.pin.id, model, limit: MOST_RUNS });
  const past = rows.flatMap(pastOf);
  const rollouts = training === null ? play.num_examples * rollouts_per_example : trainedOn(training);
  const expected = (microsOf: (run: PastRun) => number | null) => expectedOf(past, rollouts, microsOf);
  const value: RunPreview = {
    object: "run_preview",
    ...{ environment: play.pin, model, rollouts },
    based_on: { runs: past.length, rollouts: past.reduce((sum, run) => sum + run.rollouts, 0) },
    price_version: prices?.version ?? null,
    charged_micros: expected((run) =>
      prices === null ? 0 : charges().expected(prices, run, Object.keys(judges.places)),
    ),
    policy_micros: expected((run) => endpoint.prices && tokenMicros(endpoint.prices, run)),
    judge_micros: expected(({ judge_micros }) => judge_micros),
  };
  return { ok: true, value };
}

/** Null if a batch is a number of tokens: then the number of rollouts cannot be known in advance. */
function trainedOn({ max_steps, batch_size }: TrainingSpec): number | null {
  return "rollouts" in batch_size ? max_steps * batch_size.rollouts : null;
}

/** Empty for a run that played nothing. */
function pastOf({ counts, report }: Pick<RunRow, "counts" | "report">): PastRun[] {
  if (counts === null || report === null) return [];
  const { turns, usage } = report;
  const sum = (ends: Readonly<Record<string, number>>) => Object.values(ends).reduce((all, count) => all + count, 0);
  const rollouts = counts.scored + sum(counts.unscored) + sum(counts.failed) + sum(counts.cancelled);
  if (rollouts === 0 || turns === 0) return [];
  const { prompt_tokens, completion_tokens, cached_tokens = 0, judge } = usage;
  const { cost_micros: judge_micros, ...judged } = judge ?? { prompt_tokens: 0, completion_tokens: 0, cost_micros: 0 };
  const own = { prompt_tokens, cached_tokens, completion_tokens };
  return [{ rollouts, scored: counts.scored, turns, ...own, judged, judge_micros }];
}
