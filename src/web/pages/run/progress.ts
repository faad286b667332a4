/** How far a run is, and when it will probably end. Pure: the page gives the clock. */
import { OUTCOMES, type RunCounts, type RunView } from "../../../contract/run.ts";
import type { RunEvent } from "../../../contract/run-events.ts";
import { sum } from "../../components/format.ts";

export const ENDED_STATUSES: readonly RunView["status"][] = ["completed", "failed", "cancelled"];

export function hasEnded({ status }: Pick<RunView, "status">): boolean {
  return ENDED_STATUSES.includes(status);
}

/** Rollouts that ended, however they did. */
export function endedOf(counts: RunCounts): number {
  return OUTCOMES.reduce((total, outcome) => {
    const ended = counts[outcome];
    return total + (typeof ended === "number" ? ended : sum(ended));
  }, 0);
}

/** `done` of `all`, in rollouts; a training run counts its steps. */
export interface Progress {
  readonly done: number;
  readonly all: number;
  readonly unit: "rollouts" | "steps";
}

type Watched = Pick<RunView, "kind" | "status" | "counts" | "training" | "created_at">;

/** Null for a training run from a list, which does not say its steps. */
export function progressOf({ kind, counts, training }: Watched): Progress | null {
  if (kind === "eval") return { done: endedOf(counts), all: counts.planned, unit: "rollouts" };
  return training === null ? null : { done: training.steps_trained, all: training.max_steps, unit: "steps" };
}

/**
 * Seconds until the run ends if it goes on as it has gone so far; null where that cannot be said: nothing has ended yet,
 * or the run does not run. `now`: seconds since the epoch.
 */
export function secondsLeft(run: Watched, now: number): number | null {
  const progress = progressOf(run);
  if (run.status !== "running" || progress === null || progress.done === 0) return null;
  const passed = Math.max(1, now - run.created_at);
  return (Math.max(0, progress.all - progress.done) * passed) / progress.done;
}

/** An estimate, no finer than it is good for: `50 s`, `12 min`, `3 h`. */
export function leftText(seconds: number): string {
  if (seconds < 60) return `~${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `~${minutes} min` : `~${Math.round(minutes / 60)} h`;
}

type Progressed = Extract<RunEvent, { event: "run.progress" }>;

/** An older event than what was read changes nothing. */
export function withProgress(run: RunView, { id, data }: Pick<Progressed, "id" | "data">): RunView {
  if (run.last_event !== undefined && id <= run.last_event) return run;
  const { counts, ...report } = data;
  return { ...run, last_event: id, counts, report: { ...run.report, ...report } };
}
