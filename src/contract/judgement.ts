/**
 * Judges on the wire: which endpoint answers for a judge, what it replied about a rollout, and what that cost.
 *
 * Money is in whole micro-dollars. An unknown cost (an endpoint without prices, a reply without usage) is null, never
 * 0, and so is every sum that includes one.
 */
import * as z from "zod";
import { EndpointOrName, ModelName } from "./endpoint.ts";
import { LIMITS } from "./limits.ts";
import { Usage } from "./messages.ts";
import { Count, MaybeText, named } from "./primitives.ts";
import { Sampling } from "./sampling.ts";
import { ShownText } from "./shown-text.ts";

/** The judge's name in the rubric. */
export const JudgeName = ShownText;

/** The endpoint and model of a judge of the rubric. The policy's are never used by default. */
export const JudgeTarget = z.strictObject({
  endpoint: EndpointOrName.describe("an endpoint by name or id, or defined inline"),
  model: ModelName,
  sampling: Sampling.default({}),
});

/** The endpoint by its id, and its prices when the run was accepted; without prices if it had none. */
export interface ResolvedJudge {
  readonly endpoint_id: string;
  readonly model: string;
  readonly sampling: Sampling;
  readonly prices?: TokenPrices;
}

/** Prices of an endpoint, in micro-dollars per million tokens. */
export interface TokenPrices {
  readonly input_per_mtok_micros: number;
  readonly output_per_mtok_micros: number;
}

/** What a rollout or a run cost, by part. */
export const Cost = z.object({
  policy_micros: Count.nullable()
    .describe(
      "micro-dollars of the policy's tokens, by the prices of its endpoint when the run was created; null without prices, or if a reply had no usage",
    )
    .meta({ example: null }),
  judge_micros: Count.nullable()
    .describe(
      "micro-dollars of the rubric's judges, by the prices of their endpoints when the run was created; null without prices, or if a reply had no usage",
    )
    .meta({ example: 0 }),
  charged_micros: Count.describe(
    "micro-dollars that the platform charges for it, as in the organisation's ledger; 0 if nothing is charged",
  ),
});
export type Cost = z.infer<typeof Cost>;

const JudgeMicros = Count.nullable().describe("micro-dollars; null if unknown");

/** A longer one is cut in its middle. */
export const JudgeReply = z
  .string()
  .optional()
  .describe(
    `the judge's last reply as it came, at most ${LIMITS.judgeReplyCharacters} characters: a longer one is cut in its middle; absent if there was none, if it is exactly the verdict or the reason, and if it was not stored`,
  )
  .meta({ example: 'It is supported. {"reason": "It is supported.", "verdict": "supported"}' });

export const Judgement = named("Judgement", {
  judge: z.string().describe("its name in `judges`"),
  model: z.string(),
  verdict: z
    .union([z.string(), z.number(), z.record(z.string(), z.number())])
    .nullable()
    .describe("null if there is none after all retries: see `error`"),
  reason: MaybeText.describe("the judge's reason"),
  error: MaybeText,
  reply: JudgeReply,
  key: z.string().describe("sha256 of the question"),
  pass: Count.describe("number of the judgement on the same question, from 0"),
  seed: z.int().nullable().describe("random seed for the order of a group's members"),
  left_out: Count.describe("characters cut out of the middle of the evidence"),
  cached: z.boolean().describe("an earlier judgement was reused, at no cost"),
  calls: Count.describe("calls sent to the judge, those that failed included"),
  usage: Usage,
  cost_micros: JudgeMicros,
});
export type Judgement = z.infer<typeof Judgement>;

/** The same in a row of results, with the field names used there. */
export const JudgeTokens = z
  .object({ input_tokens: Count, output_tokens: Count, calls: Count, cost_micros: JudgeMicros })
  .describe("of the rubric's judges; absent if none was called");
export type JudgeTokens = z.infer<typeof JudgeTokens>;

/** What judges used and cost, apart from the policy. */
export const JudgeUsage = Usage.extend({ calls: Count, cost_micros: JudgeMicros });
export type JudgeUsage = z.infer<typeof JudgeUsage>;

/** Costs computed from the reported usage. */
export function costOfUsage({
  judge,
  cost_micros = null,
  charged_micros = 0,
}: {
  readonly judge?: JudgeUsage | undefined;
  readonly cost_micros?: number | null | undefined;
  readonly charged_micros?: number | undefined;
}): Cost {
  const judge_micros = judge === undefined ? 0 : judge.cost_micros;
  return { policy_micros: cost_micros, judge_micros, charged_micros };
}

const TOKENS_PRICED = 1_000_000;

/** Rounded to the nearest micro-dollar for each reply, so that sums of sums agree. */
export function tokenCost(
  prices: TokenPrices | undefined,
  { prompt_tokens, completion_tokens }: { prompt_tokens: number; completion_tokens: number },
): number | null {
  if (prices === undefined) return null;
  const input = prompt_tokens * prices.input_per_mtok_micros;
  const output = completion_tokens * prices.output_per_mtok_micros;
  return Math.round((input + output) / TOKENS_PRICED);
}

export function sumOfCosts(costs: Iterable<number | null>): number | null {
  let sum = 0;
  for (const cost of costs) {
    if (cost === null) return null;
    sum += cost;
  }
  return sum;
}
