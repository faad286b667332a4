/** The request of an eval, and what it shares with every run: times are integer seconds, names are snake_case. */
import * as z from "zod";
import { AgentSettings } from "./agent.ts";
import { EndpointOrName, ModelName } from "./endpoint.ts";
import { FleetOrName } from "./fleet.ts";
import { JudgeName, JudgeTarget } from "./judgement.ts";
import { LIMITS } from "./limits.ts";
import { AnyObject, Count, EXAMPLE, NonEmpty, Positive, Share } from "./primitives.ts";
import { PromptForm, unfitForTokenIds } from "./prompts.ts";
import { Sampling } from "./sampling.ts";
import { ShownText } from "./shown-text.ts";

const secondsUpTo = (most: number) => z.number().positive().max(most);
/** An invocation may last 15 minutes, and a hook begins within the first 4. */
const StageTimeout = secondsUpTo(600).optional();

/** Seconds of one model call, unless its run sets less. */
export const CALL_TIMEOUT_S = 600;

export const RunLimits = z.strictObject({
  rollout_timeout_s: secondsUpTo(86_400)
    .optional()
    .describe("a rollout past it stops with timeout_reached and is scored as it is"),
  call_timeout_s: secondsUpTo(CALL_TIMEOUT_S).default(CALL_TIMEOUT_S).describe("deadline of one model call"),
  max_retries: Count.max(20)
    .default(2)
    .describe("retries of one model call after 429, 5xx, a broken connection or an unusable reply"),
  setup_timeout_s: StageTimeout.describe("setupState or openLive: default 300"),
  turn_timeout_s: StageTimeout.describe("the environment's reply to one turn: default 300"),
  tool_timeout_s: StageTimeout.describe("one tool call: default 120"),
  cleanup_timeout_s: StageTimeout.describe("postRollout, each cleanup handler: default 120"),
  deadline_s: secondsUpTo(2_592_000)
    .optional()
    .describe("after it nothing is dispatched, and rollouts in flight end as cancelled: deadline"),
});

export type RunLimits = z.output<typeof RunLimits>;

export const RunName = ShownText.max(200);

export const Metadata = z
  .record(ShownText.max(LIMITS.metadataKeyCharacters), ShownText.max(LIMITS.metadataValueCharacters))
  .refine((pairs) => Object.keys(pairs).length <= LIMITS.metadataPairs, {
    error: `at most ${LIMITS.metadataPairs} pairs`,
  });

/** The part of a request that names where the model is called. */
interface Called {
  readonly endpoint?: unknown;
  readonly fleet?: unknown;
}

/** Refuses a run that names both an endpoint and a fleet, or neither. */
export function refusePlace(called: Called, context: z.RefinementCtx): void {
  refuseBothPlaces(called, context);
  if (called.endpoint !== undefined || called.fleet !== undefined) return;
  const message = "is required, unless fleet is set";
  context.addIssue({ code: "custom", path: ["endpoint"], message });
}

export function refuseBothPlaces({ endpoint, fleet }: Called, context: z.RefinementCtx): void {
  if (endpoint === undefined || fleet === undefined) return;
  const message = "replaces endpoint: set only one of them";
  context.addIssue({ code: "custom", path: ["fleet"], message });
}

const EvalFields = z.strictObject({
  kind: z.literal("eval").optional().default("eval").meta({ example: "eval" }),
  name: RunName.optional().meta({ example: "nightly main" }),
  environment: NonEmpty.describe("id, or id@version; GET /v1/environments lists them").meta({ example: "gsm8k@1" }),
  environment_args: AnyObject.default({}),
  dataset: z
    .union([NonEmpty, z.array(AnyObject).min(1)])
    .optional()
    .describe("an uploaded dataset by id or name, or inline rows; for an environment without rows of its own")
    .meta({ example: [EXAMPLE.row] }),
  agent: AgentSettings.optional()
    .describe(
      "an agent plays the rollouts instead of the environment's turn logic: the environment has the rows and the rubric",
    )
    .meta({ example: { name: "my-agent" } }),
  model: ModelName.meta({ example: "qwen3-4b" }),
  endpoint: EndpointOrName.optional()
    .describe("an endpoint by name or id, or defined inline; a run sets either endpoint or fleet")
    .meta({ example: {} }),
  fleet: FleetOrName.optional(),
  judges: z.record(JudgeName, JudgeTarget).default({}).describe("endpoint and model of each judge in the rubric"),
  judge_cache: z
    .boolean()
    .default(true)
    .describe("false: every judgement is requested again, even if the same question was answered before"),
  answer_cache: z
    .boolean()
    .default(false)
    .describe(
      "true: a call at temperature 0 that was answered before, for the same endpoint address, model and body, is answered from the project's cache, and costs nothing; needs sampling.temperature 0 and an endpoint",
    ),
  sampling: Sampling.default({}).meta({ example: { temperature: 0.7, max_tokens: 512 } }),
  prompts: PromptForm.default("messages"),
  num_examples: z
    .int()
    .refine((n) => n === -1 || n > 0, { error: "must be -1 (all) or at least 1" })
    .default(-1)
    .describe("-1 = all; an environment with endless tasks needs a number"),
  rollouts_per_example: Positive.max(LIMITS.groupSize).default(1).meta({ example: 4 }),
  shuffle: z.boolean().default(false),
  seed: Count.max(0xffff_ffff).default(0).meta({ example: 7 }),
  max_concurrent: Positive.max(LIMITS.maxConcurrent).default(32).describe("rollouts running at once"),
  limits: RunLimits.prefault({}),
  min_scored: Share.default(0.95).describe(
    "share of the planned rollouts that must be scored, else the run fails: too_few_scored",
  ),
  max_cost_micros: Positive.max(LIMITS.maxCostMicros)
    .optional()
    .describe(
      "hard limit on the cost of the run, in micro-dollars; rollouts beyond it end as cancelled: budget. Every call needs max_tokens, every endpoint prices",
    )
    .meta({ example: 5_000_000 }),
  metadata: Metadata.default({}).meta({ example: { branch: "main" } }),
});
/** Refuses a cache of answers that another call, or other weights, would not give again. */
function refuseCache({ answer_cache, sampling, fleet }: z.infer<typeof EvalFields>, context: z.RefinementCtx): void {
  if (!answer_cache) return;
  const refuse = (message: string) => context.addIssue({ code: "custom", path: ["answer_cache"], message });
  const { temperature, extra_body = {} } = sampling;
  if (temperature !== 0 || Object.hasOwn(extra_body ?? {}, "temperature")) {
    refuse("needs sampling.temperature 0: other answers are drawn at random");
  }
  if (fleet !== undefined) refuse("needs an endpoint: the weights of a fleet change");
}

/** Refuses prompts of token ids for calls that are not made of the conversation alone, or that get no ids. */
export function refusePrompts(
  { prompts, agent, sampling }: Pick<z.infer<typeof EvalFields>, "prompts" | "agent" | "sampling">,
  context: z.RefinementCtx,
): void {
  if (prompts === "messages") return;
  const refuse = (message: string) => context.addIssue({ code: "custom", path: ["prompts"], message });
  if (agent !== undefined) refuse(`${prompts} cannot be combined with agent: an agent sends its own messages`);
  const unfit = unfitForTokenIds(sampling);
  if (unfit !== null) refuse(`${prompts} cannot be combined with ${unfit}`);
}

function refuseEvalPrompts(asked: z.infer<typeof EvalFields>, context: z.RefinementCtx): void {
  refusePrompts(asked, context);
  if (asked.prompts === "messages") return;
  const refuse = (message: string) => context.addIssue({ code: "custom", path: ["prompts"], message });
  if (asked.answer_cache) refuse(`${asked.prompts} cannot be combined with answer_cache`);
  if (asked.sampling.extra_body?.["return_token_ids"] === true) return;
  refuse(
    `${asked.prompts} needs sampling.extra_body.return_token_ids true, because an eval does not request token ids`,
  );
}

export const EvalRequest = EvalFields.superRefine(refusePlace).superRefine(refuseCache).superRefine(refuseEvalPrompts);
export type EvalRequest = z.infer<typeof EvalRequest>;
export type EvalRequestInput = z.input<typeof EvalRequest>;
