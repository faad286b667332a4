/** The names of a run's events. They are kept apart from the schemas: a client needs only the names to follow a run. */
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

/** Whether this event is the last one of its run. */
export function isTerminalEvent(name: EventName): boolean {
  return name === "run.completed" || name === "run.failed" || name === "run.cancelled";
}
