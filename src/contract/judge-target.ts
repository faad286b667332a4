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

/** By the rubric's names; the endpoint by its id, with its prices at that time, if it had any. */
export type ResolvedJudges = Readonly<
  Record<
    string,
    Omit<z.output<typeof JudgeTarget>, "endpoint"> & {
      readonly endpoint: string;
      readonly prices?: TokenPrices;
    }
  >
>;
