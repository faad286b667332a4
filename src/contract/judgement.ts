/** What a judge said of a rollout, and what that cost, on the wire. */
import * as z from "zod";
import { type Cost, Micros } from "./cost.ts";
import { Usage } from "./messages.ts";

const Count = z.int().nonnegative();

const JudgeMicros = Micros.nullable().describe("micro-dollars; null where that cannot be known");

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
    cached: z.boolean().describe("nobody was asked: the verdict was there already, and cost nothing"),
    calls: Count.describe("calls sent to the judge, those that failed included"),
    usage: Usage,
    cost_micros: JudgeMicros,
  })
  .meta({ id: "Judgement" });
export type Judgement = z.infer<typeof Judgement>;

/** The same in a row of results, by its words. */
export const JudgeTokens = z
  .object({ input_tokens: Count, output_tokens: Count, calls: Count, cost_micros: JudgeMicros })
  .describe("of the rubric's judges; absent where none was asked");
export type JudgeTokens = z.infer<typeof JudgeTokens>;

/** What judges cost, apart from the policy. */
export const JudgeUsage = Usage.extend({ calls: Count, cost_micros: JudgeMicros });
export type JudgeUsage = z.infer<typeof JudgeUsage>;

/** What was spent, by what is reported of it. */
export function costOfUsage({ judge }: { readonly judge?: JudgeUsage | undefined }): Cost {
  return { judge_micros: judge === undefined ? 0 : judge.cost_micros };
}
