/**
 * The events of a run, as the stream sends them: a name, an id that only grows, and data whose shape depends on the
 * name.
 */
import * as z from "zod";
import { Count, named, Step, Version } from "./primitives.ts";
import { RunReport } from "./report.ts";
import { RolloutFinished, RUN_STATUSES, RunCounts, RunView } from "./run.ts";

const Id = Count.describe("send as Last-Event-ID to resume after this event").meta({ example: 41 });

/** Sent at most once a second. */
export const RunProgress = named("RunProgress", {
  counts: RunCounts,
  reward: RunReport.shape.reward,
  turns: RunReport.shape.turns,
  usage: RunReport.shape.usage,
});
export type RunProgress = z.infer<typeof RunProgress>;

/** Dispatch was stopped or resumed. */
export const RunPaused = named("RunPaused", {
  status: z.enum(RUN_STATUSES),
  reason: z
    .enum(["user", "retry", "dead_batch"])
    .describe("retry: an ended run continues with new attempts; dead_batch: its trainer gave up a batch"),
});
export type RunPaused = z.infer<typeof RunPaused>;

/** The last event of a run, under each of its three names. */
export const RunEnded = named("RunEnded", {
  status: z.enum(["completed", "failed", "cancelled"]),
  error: RunView.shape.error,
});
export type RunEnded = z.infer<typeof RunEnded>;

const Batch = { step: Step, batch_id: z.string() };

/** A batch of a training run is ready to be leased. */
export const BatchReady = named("BatchReady", {
  ...Batch,
  generation: Count,
  rollouts: Count,
  samples: Count,
  tokens: Count,
});
/** The trainer acknowledged the batch after training on it. */
export const BatchAcked = named("BatchAcked", {
  ...Batch,
  produced_version: Version,
  not_finite: z.array(z.string()).optional().describe("metrics sent as NaN or an infinity"),
});
/** All delivery attempts of a batch failed, and the run is paused. */
export const BatchDead = named("BatchDead", { ...Batch, reason: z.string() });

export const WeightsPublished = named("WeightsPublished", { version: Version });
export const WeightsApplied = named("WeightsApplied", {
  version: Version.describe("the oldest that any replica serves"),
  by_replica: z.record(z.string(), Version),
});

/** Replaces events that are too old to be kept. */
export const RunSnapshot = named("RunSnapshot", { status: z.enum(RUN_STATUSES), counts: RunCounts });
export type RunSnapshot = z.infer<typeof RunSnapshot>;

/** One event: its `id` and `event` fields, and its `data` field parsed as JSON. */
export const RunEvent = z
  .discriminatedUnion("event", [
    named("RunProgressEvent", { id: Id, event: z.literal("run.progress"), data: RunProgress }),
    named("RolloutFinishedEvent", { id: Id, event: z.literal("rollout.finished"), data: RolloutFinished }),
    named("RunEndedEvent", {
      id: Id,
      event: z.enum(["run.completed", "run.failed", "run.cancelled"]),
      data: RunEnded,
    }),
    named("RunPausedEvent", { id: Id, event: z.enum(["run.paused", "run.resumed"]), data: RunPaused }),
    named("BatchReadyEvent", { id: Id, event: z.literal("batch.ready"), data: BatchReady }),
    named("BatchAckedEvent", { id: Id, event: z.literal("batch.acked"), data: BatchAcked }),
    named("BatchDeadEvent", { id: Id, event: z.literal("batch.dead"), data: BatchDead }),
    named("WeightsPublishedEvent", { id: Id, event: z.literal("weights.published"), data: WeightsPublished }),
    named("WeightsAppliedEvent", { id: Id, event: z.literal("weights.applied"), data: WeightsApplied }),
    named("RunSnapshotEvent", { id: Id, event: z.literal("snapshot"), data: RunSnapshot }),
  ])
  .meta({ id: "RunEvent", example: { event: "rollout.finished" } });
export type RunEvent = z.infer<typeof RunEvent>;
