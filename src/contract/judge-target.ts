/** Who answers for a judge of a rubric: an endpoint and a model of its own, never the policy's by default. */
import * as z from "zod";
import type { TokenPrices } from "./cost.ts";
import { InlineEndpoint, ModelName } from "./endpoint.ts";
import { Sampling } from "./sampling.ts";
import { ShownText } from "./shown-text.ts";

/** As the rubric calls it. */
export const JudgeName = ShownText;

export const JudgeTarget = z.strictObject({
  endpoint: z.union([z.string().min(1), InlineEndpoint]).describe("an endpoint by name or id, or one given here"),
  model: ModelName,
  sampling: Sampling.default({}),
});

/** The endpoint by its id, with its prices when the run was accepted; absent where it had none. */
export interface ResolvedJudge {
  readonly endpoint_id: string;
  readonly model: string;
  readonly sampling: Sampling;
  readonly prices?: TokenPrices;
}
