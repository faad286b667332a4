/** What a run would probably cost, said before it is begun. */
import * as z from "zod";
import { BuiltEnvironment, Count, MaybeText, named } from "./primitives.ts";

const Expected = z
  .object({
    expected: Count,
    low: Count.nullable(),
    high: Count.nullable(),
  })
  .nullable();

export const RunPreview = named("RunPreview", {
  object: z.literal("run_preview"),
  environment: BuiltEnvironment,
  model: z.string().meta({ example: "qwen3-4b" }),
  rollouts: Count.nullable()
    .describe(
      "it would play; of a training run those that its batches take, at least (null where a batch is so many tokens)",
    )
    .meta({ example: 400 }),
  based_on: z
    .object({ runs: Count.meta({ example: 3 }), rollouts: Count.meta({ example: 1200 }) })
    .describe(
      "what is known: the latest runs that have ended, 20 at most, of the same environment and model in the project. Other arguments, sampling or rows may cost something else",
    ),
  price_version: MaybeText.describe("the list of prices in force; null where nothing is charged").meta({
    example: "2026-11",
  }),
  charged_micros: Expected.describe(
    "what the platform would charge, in micro-dollars: from the mean of all rollouts, and from the least and the greatest mean of a run, which is no interval of confidence (null of fewer than two runs). Null where nothing is known, or the run has judges whose tokens the platform sells at different prices",
  ).meta({ example: { expected: 41_200, low: 39_600, high: 47_100 } }),
  policy_micros: Expected.describe("its tokens by the prices of its endpoint; null where it has none, too").meta({
    example: null,
  }),
  judge_micros: Expected.describe("what judges cost in those runs; null where that is not known, too").meta({
    example: { expected: 0, low: 0, high: 0 },
  }),
});
export type RunPreview = z.infer<typeof RunPreview>;
export type ExpectedMicros = z.infer<typeof Expected>;
