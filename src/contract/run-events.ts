/** The events of a run, as the stream carries them: a name, an id that only grows, and data of the name's own shape. */
import * as z from "zod";
import { Count, Step, Version } from "./primitives.ts";
import { RunReport } from "./report.ts";
import { RolloutFinished, RUN_STATUSES, RunCounts, RunView } from "./run.ts";

const Id = Count.describe("goes into Last-Event-ID to go on behind this event").meta({ example: 41 });

/** At most one a second. */
export const RunProgress = z
  .object({
    counts: RunCounts,
    reward: RunReport.shape.reward,
    turns: RunReport.shape.turns,
    usage: RunReport.shape.usage,
  })
  .meta({ id: "RunProgress" });
export type RunProgress = z.infer<typeof RunProgress>;

/** Dispatch was stopped, or goes on. */
export const RunPaused = z
  .object({
    status: z.enum(RUN_STATUSES),
    reason: z
      .enum(["user", "retry", "dead_batch"])
      .describe("retry: an ended run goes on with new attempts; dead_batch: its trainer gave a batch up"),
  })
  .meta({ id: "RunPaused" });
export type RunPaused = z.infer<typeof RunPaused>;

/** The last event of a run, whichever of the three it is. */
export const RunEnded = z
  .object({ status: z.enum(["completed", "failed", "cancelled"]), error: RunView.shape.error })
  .meta({ id: "RunEnded" });
export type RunEnded = z.infer<typeof RunEnded>;

const Batch = { step: Step, batch_id: z.string() };

/** A training run's batch may be leased; */
export const BatchReady = z
  .object({ ...Batch, generation: Count, rollouts: Count, samples: Count, tokens: Count })
  .meta({ id: "BatchReady" });
/** its trainer has trained it; */
export const BatchAcked = z
  .object({
    ...Batch,
    produced_version: Version,
    not_finite: z.array(z.string()).optional().describe("metrics that came as NaN or an infinity"),
  })
  .meta({ id: "BatchAcked" });
/** or every attempt came to nothing, and the run is paused. */
export const BatchDead = z.object({ ...Batch, reason: z.string() }).meta({ id: "BatchDead" });

export const WeightsPublished = z.object({ version: Version }).meta({ id: "WeightsPublished" });
export const WeightsApplied = z
  .object({
    version: Version.describe("the oldest that any replica serves"),
    by_replica: z.record(z.string(), Version),
  })
  .meta({ id: "WeightsApplied" });

/** Stands in for events older than those that are kept. */
export const RunSnapshot = z.object({ status: z.enum(RUN_STATUSES), counts: RunCounts }).meta({ id: "RunSnapshot" });
export type RunSnapshot = z.infer<typeof RunSnapshot>;

/** One event: its `id` and `event` fields, and its `data` field read as JSON. */
export const RunEvent = z
  .discriminatedUnion("event", [
    z.object({ id: Id, event: z.literal("run.progress"), data: RunProgress }).meta({ id: "RunProgressEvent" }),
    z
      .object({ id: Id, event: z.literal("rollout.finished"), data: RolloutFinished })
      .meta({ id: "RolloutFinishedEvent" }),
    z
      .object({
        id: Id,
        event: z.enum(["run.completed", "run.failed", "run.cancelled"]),
        data: RunEnded,
      })
      .meta({ id: "RunEndedEvent" }),
    z.object({ id: Id, event: z.enum(["run.paused", "run.resumed"]), data: RunPaused }).meta({ id: "RunPausedEvent" }),
    z.object({ id: Id, event: z.literal("batch.ready"), data: BatchReady }).meta({ id: "BatchReadyEvent" }),
    z.object({ id: Id, event: z.literal("batch.acked"), data: BatchAcked }).meta({ id: "BatchAckedEvent" }),
    z.object({ id: Id, event: z.literal("batch.dead"), data: BatchDead }).meta({ id: "BatchDeadEvent" }),
    z
      .object({ id: Id, event: z.literal("weights.published"), data: WeightsPublished })
      .meta({ id: "WeightsPublishedEvent" }),
    z.object({ id: Id, event: z.literal("weights.applied"), data: WeightsApplied }).meta({ id: "WeightsAppliedEvent" }),
    z.object({ id: Id, event: z.literal("snapshot"), data: RunSnapshot }).meta({ id: "RunSnapshotEvent" }),
  ])
  .meta({ id: "RunEvent", example: { event: "rollout.finished" } });
export type RunEvent = z.infer<typeof RunEvent>;
