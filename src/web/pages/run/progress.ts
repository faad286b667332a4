/** The progress of a run, and when it will probably end. Pure: the page passes the clock. */
import { OUTCOMES, type RunCounts, type RunView } from "../../../contract/run.ts";
import type { RunEvent } from "../../../contract/run-events.ts";
import { sum } from "../../components/format.ts";

export const ENDED_STATUSES: readonly RunView["status"][] = ["completed", "failed", "cancelled"];

export function hasEnded({ status }: Pick<RunView, "status">): boolean {
  return ENDED_STATUSES.includes(status);
}

/** Rollouts that ended, with any outcome. */
export function endedOf(counts: RunCounts): number {
  return OUTCOMES.reduce((total, outcome) => {
    const ended = counts[outcome];
    return total + (typeof ended === "number" ? ended : sum(ended));
  }, 0);
}

/** `done` of `all`, in rollouts; in steps for a training run. */
export interface Progress {
  readonly done: number;
  readonly all: number;
  readonly unit: "rollouts" | "steps";
}

type Watched = Pick<RunView, "kind" | "status" | "counts" | "training" | "created_at">;

/** Null for a training run from a list, which does not include its steps. */
export function progressOf({ kind, counts, training }: Watched): Progress | null {
  if (kind === "eval") return { done: endedOf(counts), all: counts.planned, unit: "rollouts" };
  return training === null ? null : { done: training.steps_trained, all: training.max_steps, unit: "steps" };
}

/**
 * Seconds until the run ends at its current speed; null if nothing has ended yet, or if the run is not running. `now`:
 * seconds since the epoch.
 */
export function secondsLeft(run: Watched, now: number): number | null {
  const progress = progressOf(run);
  if (run.status !== "running" || progress === null || progress.done === 0) return null;
  const passed = Math.max(1, now - run.created_at);
  return (Math.max(0, progress.all - progress.done) * passed) / progress.done;
}

/** A rounded estimate: `50 s`, `12 min`, `3 h`. */
export function leftText(seconds: number): string {
  if (seconds < 60) return `~${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `~${minutes} min` : `~${Math.round(minutes / 60)} h`;
}

type Progressed = Extract<RunEvent, { event: "run.progress" }>;

/** An event that is older than the run as read changes nothing. */
export function withProgress(run: RunView, { id, data }: Pick<Progressed, "id" | "data">): RunView {
  if (run.last_event !== undefined && id <= run.last_event) return run;
  const { counts, ...report } = data;
  return { ...run, last_event: id, counts, report: { ...run.report, ...report } };
}
