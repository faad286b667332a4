/** Changes of a run on the wire: its settings, another attempt of rollouts, and forks from the middle of a rollout. */
import * as z from "zod";
import { EndpointOrName, ModelName } from "./endpoint.ts";
import { CANCEL_REASONS, FAILURE_CLASSES, UNSCORED_CAUSES } from "./errors.ts";
import { EvalRequest, Metadata, RunName, refuseBothPlaces } from "./eval-request.ts";
import { FleetOrName } from "./fleet.ts";
import { JudgeName, JudgeTarget } from "./judgement.ts";
import { LIMITS } from "./limits.ts";
import { AnyObject, Count, Positive, Share } from "./primitives.ts";
import { Sampling } from "./sampling.ts";

/** Only the given fields change. */
export const RunPatch = z.strictObject({
  name: RunName.nullable().optional(),
  metadata: Metadata.optional()
    .describe("replaces all pairs")
    .meta({ example: { branch: "main" } }),
  max_concurrent: Positive.max(LIMITS.maxConcurrent)
    .optional()
    .describe("the maximum of concurrent rollouts from now on; rollouts in flight finish")
    .meta({ example: 64 }),
});
export type RunPatch = z.infer<typeof RunPatch>;

/** Classes, causes and reasons a rollout may be retried for. */
export const RETRY_CLASSES = [...FAILURE_CLASSES, ...UNSCORED_CAUSES, ...CANCEL_REASONS] as const;

export const RetryRequest = z.strictObject({
  classes: z
    .array(z.enum(RETRY_CLASSES))
    .min(1)
    .optional()
    .describe("only rollouts that ended for one of these; default: failed, unscored, and deadline")
    .meta({ example: ["provider", "timeout"] }),
});
export type RetryRequest = z.infer<typeof RetryRequest>;

export const RescoreRequest = z.strictObject({
  environment: EvalRequest.shape.environment
    .optional()
    .describe("environment whose rubric scores: id, or id@version; default: that of the run"),
  environment_args: AnyObject.optional().describe("default: those of the run, where the environment is the same"),
  judges: z.record(JudgeName, JudgeTarget).optional().describe("replace the run's judges of the same names"),
  name: RunName.optional().meta({ example: "stricter" }),
  metadata: Metadata.optional().describe("default: that of the run"),
  min_scored: Share.optional().describe("default: that of the run"),
});
export type RescoreRequest = z.infer<typeof RescoreRequest>;
export type RescoreRequestInput = z.input<typeof RescoreRequest>;

const ForkFields = z.strictObject({
  turn: Count.describe("index of the last turn to keep, from 0; the next one is sampled again"),
  model: ModelName.optional(),
  sampling: Sampling.optional().describe("instead of the run's"),
  endpoint: EndpointOrName.optional().describe("instead of the run's endpoint or fleet"),
  fleet: FleetOrName.optional(),
  rollouts: Positive.max(LIMITS.groupSize)
    .default(1)
    .describe("number of rollouts that continue from there")
    .meta({ example: 4 }),
});
export const ForkRequest = ForkFields.superRefine(refuseBothPlaces);
export type ForkRequest = z.infer<typeof ForkRequest>;
export type ForkRequestInput = z.input<typeof ForkRequest>;
