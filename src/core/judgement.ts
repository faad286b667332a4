/** What a judge said of a rollout, and what that cost, on the wire. */
import * as z from "zod";
import { Usage } from "./messages.ts";

const Count = z.int().nonnegative();

export const Judgement = z
  .object({
    judge: z.string().describe("its name in `judges`"),
    model: z.string(),
    verdict: z
      .union([z.string(), z.number(), z.record(z.string(), z.number())])
      .nullable()
      .describe("null when there is none, after the retries: see `error`"),
    reason: z.string().nullable().describe("what the judge gave as its reason"),
    error: z.string().nullable(),
    key: z.string().describe("sha256 of what was asked: the same for the same question"),
    pass: Count.describe("which verdict on the same question, from 0"),
    seed: z.int().nullable().describe("what the order of a group's members was drawn from"),
    left_out: Count.describe("characters of the evidence that were cut out of its middle"),
    cached: z
      .boolean()
      .describe("nobody was asked: the verdict was there already, and cost nothing"),
    calls: Count.describe("calls sent to the judge, those that failed included"),
    usage: Usage,
  })
  .meta({ id: "Judgement" });
export type Judgement = z.infer<typeof Judgement>;

/** The same in a row of results, by its words. */
export const JudgeTokens = z
  .object({ input_tokens: Count, output_tokens: Count, calls: Count })
  .describe("of the rubric's judges; absent where none was asked");
export type JudgeTokens = z.infer<typeof JudgeTokens>;

/** What judges cost, apart from the policy. */
export const JudgeUsage = Usage.extend({ calls: Count });
export type JudgeUsage = z.infer<typeof JudgeUsage>;
