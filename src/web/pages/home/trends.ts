/** The scores of evals over time, for each environment and model. Pure. */
import type { RunView } from "../../../contract/run.ts";
import { isWhole } from "../runs/group-rows.ts";

export interface Trend {
  readonly environment: string;
  readonly model: string;
  /** The mean scores of its whole runs, the oldest first. */
  readonly scores: readonly number[];
  /** The newest run, whole or not. */
  readonly latest: RunView;
  /** The newest whole run, and the one before it. */
  readonly scored: RunView | null;
  readonly before: RunView | null;
  readonly runs: number;
}

/** The most scores of a line. */
const POINTS = 20;

/**
 * One trend for each environment and model, those of an environment together; the environment that was evaluated last
 * comes first. `runs`: the newest first.
 */
export function trendsOf(runs: readonly RunView[]): readonly Trend[] {
  const byEnvironment = Map.groupBy(runs, ({ environment }) => environment.id);
  return [...byEnvironment].flatMap(([environment, of]) => {
    return [...Map.groupBy(of, ({ model }) => model)].flatMap(([model, same]) => trendOf(environment, model, same));
  });
}

function trendOf(environment: string, model: string, runs: readonly RunView[]): Trend[] {
  const [latest] = runs;
  if (latest === undefined) return [];
  const whole = runs.filter(isWhole).slice(0, POINTS).reverse();
  const scores = whole.flatMap(({ report }) => (report.reward.mean === null ? [] : [report.reward.mean]));
  return [
    {
      environment,
      model,
      scores,
      latest,
      scored: whole.at(-1) ?? null,
      before: whole.at(-2) ?? null,
      runs: runs.length,
    },
  ];
}

/** How much the last score differs from the one before, with its sign; null if there is none before. */
export function changeText(scores: readonly number[]): string | null {
  const [last, before] = [scores.at(-1), scores.at(-2)];
  if (last === undefined || before === undefined) return null;
  const change = last - before;
  const shown = Math.abs(change).toFixed(3);
  if (Number(shown) === 0) return "±0.000";
  return `${change < 0 ? "−" : "+"}${shown}`;
}
