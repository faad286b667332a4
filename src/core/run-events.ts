/** The events of a run, as the stream carries them: a name, an id that only grows, and data of the name's own shape. */
import * as z from "zod";
import { RunReport } from "./report.ts";
import { RolloutFinished, RUN_STATUSES, RunCounts, RunView } from "./run.ts";

const Id = z.int().nonnegative().describe("goes into Last-Event-ID to go on behind this event");

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
    reason: z.enum(["user", "retry"]).describe("retry: an ended run goes on with new attempts"),
  })
  .meta({ id: "RunPaused" });
export type RunPaused = z.infer<typeof RunPaused>;

/** The last event of a run, whichever of the three it is. */
export const RunEnded = z
  .object({ status: z.enum(["completed", "failed", "cancelled"]), error: RunView.shape.error })
  .meta({ id: "RunEnded" });
export type RunEnded = z.infer<typeof RunEnded>;

/** Stands in for events older than those that are kept. */
export const RunSnapshot = z
  .object({ status: z.enum(RUN_STATUSES), counts: RunCounts })
  .meta({ id: "RunSnapshot" });
export type RunSnapshot = z.infer<typeof RunSnapshot>;

/** One event: its `id` and `event` fields, and its `data` field read as JSON. */
export const RunEvent = z
  .discriminatedUnion("event", [
    z.object({ id: Id, event: z.literal("run.progress"), data: RunProgress }),
    z.object({ id: Id, event: z.literal("rollout.finished"), data: RolloutFinished }),
    z.object({
      id: Id,
      event: z.enum(["run.completed", "run.failed", "run.cancelled"]),
      data: RunEnded,
    }),
    z.object({ id: Id, event: z.enum(["run.paused", "run.resumed"]), data: RunPaused }),
    z.object({ id: Id, event: z.literal("snapshot"), data: RunSnapshot }),
  ])
  .meta({ id: "RunEvent" });
export type RunEvent = z.infer<typeof RunEvent>;
