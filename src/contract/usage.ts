/** What was used and charged, by time and whatever it is grouped by: OpenAI's form of usage, with our counts. */
import * as z from "zod";
import { CHARGE_LINES, SignedMicros } from "./money.ts";
import { Count, EXAMPLE, MaybeText, named, Seconds } from "./primitives.ts";

export const USAGE_GROUPS = ["project", "key", "environment", "model", "kind"] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

/** Seconds of a bucket, by how its width is written. */
export const BUCKET_WIDTHS = { "1h": 3600, "1d": 86_400 } as const;
export type BucketWidth = keyof typeof BUCKET_WIDTHS;

/** What is counted, in the order of the columns of a CSV. */
export const USE_COUNTS = [
  "rollouts",
  "scored",
  "turns",
  "calls",
  "input_tokens",
  "cached_input_tokens",
  "output_tokens",
  "judge_calls",
  "judge_input_tokens",
  "judge_output_tokens",
  "lost_calls",
  "pushes",
  "byte_days",
] as const;
export type UseCount = (typeof USE_COUNTS)[number];

const OF_NAME = "null unless grouped by it";
const Lines = z.partialRecord(z.enum(CHARGE_LINES), Count);

export const UsageResult = named("UsageResult", {
  object: z.literal("usage.result"),
  project_id: MaybeText.describe(OF_NAME).meta({ example: EXAMPLE.project }),
  key_id: MaybeText.describe(`the key or person that began the runs; ${OF_NAME}`).meta({ example: null }),
  environment: MaybeText.describe(OF_NAME).meta({ example: null }),
  model: MaybeText.describe(OF_NAME).meta({ example: null }),
  kind: MaybeText.describe(`eval, training or storage; ${OF_NAME}`).meta({ example: null }),
  rollouts: Count.describe("that ended, however").meta({ example: 40 }),
  scored: Count.meta({ example: 38 }),
  turns: Count.meta({ example: 92 }),
  calls: Count.describe("sent to the policy").meta({ example: 95 }),
  input_tokens: Count.meta({ example: 10_400 }),
  cached_input_tokens: Count.describe("of the input tokens, those its endpoint had in its cache"),
  output_tokens: Count.meta({ example: 5210 }),
  judge_calls: Count,
  judge_input_tokens: Count,
  judge_output_tokens: Count,
  lost_calls: Count.describe("calls whose replies were lost; their tokens are not counted").meta({ example: 3 }),
  pushes: Count.describe("batches that a trainer took"),
  byte_days: Count.describe("bytes stored, once a day"),
  cost_micros: SignedMicros.describe("what the platform charged, in micro-dollars").meta({ example: 4304 }),
  lines: Lines.describe("the same by line").meta({ example: { rollout: 2400, turns: 1104, scoring: 800 } }),
});
export type UsageResult = z.infer<typeof UsageResult>;

export const UsageBucket = named("UsageBucket", {
  object: z.literal("bucket"),
  start_time: Seconds.meta({ example: 1_795_392_000 }),
  end_time: Seconds.meta({ example: 1_795_478_400 }),
  results: z
    .array(UsageResult)
    .describe("none where nothing was used")
    .meta({ example: [{}] }),
});
export type UsageBucket = z.infer<typeof UsageBucket>;

export const UsagePage = named("UsagePage", {
  object: z.literal("page"),
  data: z.array(UsageBucket).meta({ example: [{}] }),
  has_more: z.boolean(),
  next_page: MaybeText.describe("give it as `page` for the buckets that follow").meta({ example: null }),
});
export type UsagePage = z.infer<typeof UsagePage>;
