/** The estimated cost of a run, before it is created. */
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
    .describe("it would play; for a training run, the minimum for its batches (null if batches are counted in tokens)")
    .meta({ example: 400 }),
  based_on: z
    .object({ runs: Count.meta({ example: 3 }), rollouts: Count.meta({ example: 1200 }) })
    .describe(
      "basis: the latest ended runs, at most 20, of the same environment and model in the project. Other arguments, sampling or rows may change the cost",
    ),
  price_version: MaybeText.describe("the price list in force; null if nothing is charged").meta({
    example: "2026-11",
  }),
  charged_micros: Expected.describe(
    "what the platform would charge, in micro-dollars: from the mean of all rollouts, and from the lowest and highest mean of a run, which is not a confidence interval (null for fewer than two runs). Null if nothing is known, or if the run's judges use tokens that the platform sells at different prices",
  ).meta({ example: { expected: 41_200, low: 39_600, high: 47_100 } }),
  policy_micros: Expected.describe("its tokens by the prices of its endpoint; null without prices, too").meta({
    example: null,
  }),
  judge_micros: Expected.describe("cost of judges in those runs; null if unknown, too").meta({
    example: { expected: 0, low: 0, high: 0 },
  }),
});
export type RunPreview = z.infer<typeof RunPreview>;
export type ExpectedMicros = z.infer<typeof Expected>;
