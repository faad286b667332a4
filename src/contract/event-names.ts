/** The names of a run's events. Apart from their schemas: a client needs no more than these to follow a run. */
export const EVENT_NAMES = [
  "run.progress",
  "rollout.finished",
  "run.paused",
  "run.resumed",
  "run.completed",
  "run.failed",
  "run.cancelled",
  "batch.ready",
  "batch.acked",
  "batch.dead",
  "weights.published",
  "weights.applied",
  "snapshot",
] as const;
export type EventName = (typeof EVENT_NAMES)[number];

/** The event that says no more will follow. */
export function isTerminalEvent(name: EventName): boolean {
  return name === "run.completed" || name === "run.failed" || name === "run.cancelled";
}
