/** Names of the events that webhooks deliver. For runs they are the stream's events, except the frequent ones. */
export const OUTBOUND_EVENTS = [
  "run.completed",
  "run.failed",
  "run.cancelled",
  "run.paused",
  "run.resumed",
  "batch.ready",
  "batch.acked",
  "batch.dead",
  "weights.published",
  "weights.applied",
  "replica.down",
  "budget.threshold",
  "budget.exhausted",
  "trigger.refused",
  "environment.published",
  "environment.yanked",
  "agent.waiting",
] as const;
export type OutboundEventName = (typeof OUTBOUND_EVENTS)[number];
