/** Groups of runs with the same environment, model, or value of a key of their metadata. Pure. */
import type { RunView } from "../../../contract/run.ts";
import { hasEnded } from "../run/progress.ts";

/** Of the planned rollouts of a run that has ended, this share must have a score. */
const WHOLE = 0.95;

/** A row of the table: a run, or the head of a group, which is followed by its runs. */
export type RunRow =
  | { readonly is: "run"; readonly run: RunView }
  | { readonly is: "group"; readonly name: string; readonly runs: readonly RunView[] };

export function rowIdOf(row: RunRow): string {
  return row.is === "run" ? row.run.id : `group ${row.name}`;
}

/**
 * Whether the mean of its scores stands for the whole run: it has completed, and nearly all of its rollouts have a
 * score. A training run plans its groups as it goes, and drops some.
 */
export function isWhole({ kind, status, counts, report }: RunView): boolean {
  if (status !== "completed") return false;
  return kind === "training" || report.reward.n_rollouts >= WHOLE * counts.planned;
}

const METADATA = "metadata:";

/** What the listed runs can be grouped by, as the URL names it. `chosen` is always one of them. */
export function groupings(runs: readonly RunView[], chosen: string | undefined): readonly string[] {
  const keys = new Set(runs.flatMap(({ metadata }) => Object.keys(metadata)));
  const all = ["environment", "model", ...[...keys].sort().map((key) => `${METADATA}${key}`)];
  return chosen === undefined || all.includes(chosen) ? all : [...all, chosen];
}

/** "branch" of "metadata:branch". */
export function groupingText(by: string): string {
  return by.startsWith(METADATA) ? by.slice(METADATA.length) : by;
}

/** Each group with the first of its runs, in their order; without `by` no groups. Runs without a value are the last. */
export function groupRows(runs: readonly RunView[], by: string | undefined): readonly RunRow[] {
  const row = (run: RunView): RunRow => ({ is: "run", run });
  if (by === undefined) return runs.map(row);
  const groups = [...Map.groupBy(runs, (run) => groupOf(run, by))];
  const named = groups.filter(([value]) => value !== null);
  return [...named, ...groups.filter(([value]) => value === null)].flatMap(([value, of]): RunRow[] => {
    return [{ is: "group", name: value ?? `no ${groupingText(by)}`, runs: of }, ...of.map(row)];
  });
}

function groupOf(run: RunView, by: string): string | null {
  if (by === "environment") return run.environment.id;
  return by === "model" ? run.model : (run.metadata[groupingText(by)] ?? null);
}

/** The newest and the best mean score of the group's whole runs; null without one. */
export function scoresOf(runs: readonly RunView[]): { readonly latest: number; readonly best: number } | null {
  const whole = runs.flatMap((run) => {
    const { mean } = run.report.reward;
    return hasEnded(run) && isWhole(run) && mean !== null ? [{ mean, at: run.created_at }] : [];
  });
  const [first] = whole;
  if (first === undefined) return null;
  const latest = whole.reduce((newest, one) => (one.at > newest.at ? one : newest), first);
  return { latest: latest.mean, best: Math.max(...whole.map(({ mean }) => mean)) };
}
