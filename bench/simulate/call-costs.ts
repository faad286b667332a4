/** How many calls each event of the platform makes, as measure-calls.ts measures it. */
import * as z from "zod";

const Tables = z.array(z.string()).readonly();
export type Tables = z.infer<typeof Tables>;

/** Calls per event. Lists of tables: one statement of D1 for each. */
export const CallCosts = z.strictObject({
  /** `POST /v1/runs`, without what isolates keep for a while: keys, limits, counters. */
  create: z.strictObject({
    run_requests: z.number(),
    audit_requests: z.number(),
    d1_reads: z.number(),
    d1_writes: z.number(),
    r2_class_a: z.number(),
  }),
  /** A message of `rollout-groups` that names rollouts of one object. */
  start_message: z.strictObject({
    run_requests: z.number(),
    rollout_requests: z.number(),
    /** For a run with a dataset. */
    r2_class_b: z.number(),
  }),
  /** A message of `rollout-scores`, and each of its rollouts; their trajectories are objects of R2. */
  score_message: z.strictObject({ run_requests: z.number(), r2_class_b_per_rollout: z.number() }),
  /** A message of `run-segments`. */
  segment_message: z.strictObject({ run_requests: z.number(), r2_class_a: z.number() }),
  /** A rollout whose trajectory is over 32 KiB. */
  large_rollout: z.strictObject({ r2_class_a: z.number() }),
  turn: z.strictObject({
    rollout_rows: z.number(),
  }),
  rollout: z.strictObject({ reports: z.number(), rollout_rows: z.number() }),
  /** What an object that plays rollouts reads for a call. Each is kept for a while in the isolate. */
  isolate: z.strictObject({
    endpoint: Tables,
    fleet: Tables,
    /** To find out that all of it is still current. */
    version_requests: z.number(),
  }),
  /** What is written when the run's row is written while it is in progress. */
  run_row: z.strictObject({ d1_writes: z.number() }),
});
export type CallCosts = z.infer<typeof CallCosts>;
