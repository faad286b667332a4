/**
 * The wire schemas of runs: the requests that create a run, and a run, a rollout, a row of results and an environment
 * as they are read. The API parses with these schemas, the OpenAPI page is made from them, and the client's types are
 * theirs. Wire names are snake_case; times are integer seconds since the epoch, except verifiers' `timing`; money is
 * integer micro-dollars.
 */
import * as z from "zod";
import { AgentSettings } from "./agent.ts";
import { EvalRequest, RunLimits } from "./eval-request.ts";
import { Cost, Judgement, JudgeTokens } from "./judgement.ts";
import { Usage } from "./messages.ts";
import {
  AnyObject,
  BuiltEnvironment,
  Count,
  CountsByName,
  EXAMPLE,
  listOf,
  MaybeNumber,
  MaybeText,
  named,
  RolloutId,
  RunId,
  Seconds,
  TaskKey,
} from "./primitives.ts";
import { MESSAGES_CAUSES, PromptForm } from "./prompts.ts";
import { PublishedVersion } from "./published-environment.ts";
import { LostUsage, RunReport } from "./report.ts";
import { RowReviews } from "./row-review.ts";
import { TrainingRequest } from "./training-request.ts";
import { TrainerSecrets, TrainingView } from "./training-view.ts";

export const RUN_STATUSES = ["queued", "running", "paused", "completed", "failed", "cancelled"] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];
export const OUTCOMES = ["scored", "unscored", "failed", "cancelled"] as const;
export type Outcome = (typeof OUTCOMES)[number];
export const ROLLOUT_STATUSES = ["queued", "running", "scoring", "done"] as const;
export type RolloutStatus = (typeof ROLLOUT_STATUSES)[number];

/**
 * A body is parsed by the schema that its `kind` names, and only that schema's errors are returned. Without a `kind` it
 * is an eval.
 */
export const RunRequest = z.discriminatedUnion("kind", [
  EvalRequest.meta({ id: "EvalRequest" }),
  TrainingRequest.meta({ id: "TrainingRequest" }),
]);
export type RunRequest = z.infer<typeof RunRequest>;
export type RunRequestInput = z.input<typeof RunRequest>;
export const RUN_KINDS = ["eval", "training"] as const;
export type RunKind = (typeof RUN_KINDS)[number];

/** The orders of a list of runs. */
export const RUN_SORTS = ["created", "name", "reward", "cost"] as const;
export type RunSort = (typeof RUN_SORTS)[number];

/**
 * The accounting law: planned = pending + dispatched; dispatched = in_flight + scored + unscored + failed + cancelled.
 */
export const RunCounts = named("RunCounts", {
  planned: Count.meta({ example: 4 }),
  pending: Count,
  dispatched: Count.meta({ example: 4 }),
  in_flight: Count.describe("running, or answered and waiting for scores").meta({ example: 2 }),
  scored: Count.meta({ example: 1 }),
  unscored: CountsByName.describe("by cause: judge, scorer, non_finite"),
  failed: CountsByName.describe("by class").meta({ example: { provider: 1 } }),
  cancelled: CountsByName.describe("by reason"),
});
export type RunCounts = z.infer<typeof RunCounts>;

export const STATUS_REASON_STATES = [
  "active",
  "rate_limited",
  "endpoint_down",
  "over_limit",
  "object_unreadable",
  "storage_full",
  "over_budget",
  "waiting_for_trainer",
  "waiting_for_rollouts",
  "paused",
  "draining",
  "upgrading",
] as const;

/** A rollout, and the last of its turns that the forked rollout begins with. */
export const ForkedFrom = z.object({
  rollout_id: RolloutId,
  turn: Count.describe("index of the last turn that is kept; the first turn is 0"),
});
export type ForkedFrom = z.infer<typeof ForkedFrom>;

const MaxReward = z
  .number()
  .exactOptional()
  .describe("the best possible reward, as the environment declares it; absent if it declares none")
  .meta({ example: 1.1 });

export const RunView = named("Run", {
  object: z.literal("run"),
  id: RunId,
  kind: z.enum(RUN_KINDS),
  name: MaybeText.meta({ example: "nightly main" }),
  status: z.enum(RUN_STATUSES).meta({ example: "running" }),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  status_reason: z
    .object({ state: z.enum(STATUS_REASON_STATES), reason: MaybeText })
    .nullable()
    .describe("whether and why dispatch waits; null once the run has ended")
    .meta({ example: {} }),
  environment: BuiltEnvironment,
  environment_args: AnyObject,
  model: z.string().meta({ example: "qwen3-4b" }),
  endpoint: z
    .object({
      id: z.string().meta({ example: EXAMPLE.endpoint }),
      name: MaybeText.describe("null for an inline endpoint"),
      base_url: z.string().meta({ example: "https://gpu.example/v1" }),
      api_key_last4: MaybeText.meta({ example: "9f2c" }),
    })
    .nullable()
    .describe("where its model is called; null for a run on a fleet")
    .meta({ example: {} }),
  fleet: z
    .object({ id: z.string(), name: MaybeText.describe("null for one that was deleted") })
    .nullable()
    .describe("the fleet that serves its model, instead of an endpoint"),
  agent: AgentSettings.nullable().describe("the agent that plays its rollouts; null if the environment plays them"),
  dataset: MaybeText.describe("id of the uploaded dataset, if any"),
  judges: z.record(z.string(), z.object({ endpoint: z.string(), model: z.string() })),
  sampling: AnyObject.meta({ example: { temperature: 0.7, max_tokens: 512 } }),
  num_examples: Count.meta({ example: 1 }),
  rollouts_per_example: Count.meta({ example: 4 }),
  max_concurrent: Count.meta({ example: 32 }),
  limits: RunLimits.meta({ example: { call_timeout_s: 600, max_retries: 2 } }),
  min_scored: z.number().meta({ example: 0.95 }),
  max_reward: MaxReward,
  answer_cache: z
    .boolean()
    .exactOptional()
    .describe("true: calls that were answered before are answered from the project's cache; absent: they are made"),
  prompts: PromptForm.exactOptional().describe("how its prompts are sent; absent: messages"),
  max_cost_micros: Count.nullable().describe(
    "its own cap, in micro-dollars; report.counted_micros is what counts so far",
  ),
  shuffle: z.boolean(),
  seed: Count.meta({ example: 7 }),
  metadata: z.record(z.string(), z.string()).meta({ example: { branch: "main" } }),
  counts: RunCounts,
  report: RunReport,
  cost: Cost.describe("of the rollouts that have ended so far"),
  dead_letters: Count.describe("messages that a queue gave up on; the run's alarm does their work"),
  last_event: Count.optional()
    .describe("id of the last event included in this view: stream events after it; absent in lists")
    .meta({ example: 41 }),
  forked_from: ForkedFrom.nullable().describe("the rollout whose turns, up to this one, its rollouts start with"),
  rescored_from: MaybeText.describe("the run whose trajectories it scores"),
  training: TrainingView.nullable().describe("for a single training run; null in lists, and for an eval"),
  created_at: Seconds,
  finished_at: Seconds.nullable(),
});
export type RunView = z.infer<typeof RunView>;
export const RunList = listOf(RunView, "RunList", EXAMPLE.run);

/** The reply that creates a run. For a training run it has the trainer's credentials, which are shown only once. */
export const CreatedRun = RunView.extend({
  trainer: TrainerSecrets.nullish().describe(
    "of a training run; null in a reply that is replayed by its Idempotency-Key",
  ),
}).meta({ id: "CreatedRun" });
export type CreatedRun = z.infer<typeof CreatedRun>;

const StopCondition = MaybeText.meta({ example: "max_turns_reached" });

/** Data of `rollout.finished`. */
export const RolloutFinished = named("RolloutFinished", {
  rollout_id: RolloutId,
  example_id: Count,
  outcome: z.enum(OUTCOMES),
  reason: MaybeText,
  reward: MaybeNumber.meta({ example: 1 }),
  turns: Count.meta({ example: 1 }),
  stop_condition: StopCondition,
});
export type RolloutFinished = z.infer<typeof RolloutFinished>;

const Score = z.object({ name: z.string(), score: MaybeNumber, weight: z.number() });
const ErrorView = z.object({
  error: z.string(),
  message: z.string(),
  error_chain_str: z.string(),
  error_chain_repr: z.string(),
  retryable: z.boolean(),
});
const FailedCallView = z.object({
  turn: Count.describe("index of the turn; the first turn is 0"),
  call: Count.describe("which of the turn's calls, from 1"),
  at: Seconds,
  reason: z.enum(["provider", "timeout"]),
  error: z.string(),
  message: z.string(),
  status: z.int().optional().describe("HTTP status of the reply; absent without a reply"),
  replica: z.string().optional().describe("fleet runs: the replica that failed the call"),
});
const ScoringErrorView = z.object({
  function: z.string(),
  error: z.string(),
  retryable: z.boolean(),
});

const Prompt = z.array(AnyObject).meta({ example: EXAMPLE.prompt });
const Completion = z.array(AnyObject).meta({ example: [EXAMPLE.completion] });
const Advantage = z
  .number()
  .nullable()
  .describe(
    "reward minus the mean reward of its group, or as the training run's estimator computes it; null in a group of one, or while running",
  )
  .meta({ example: 0.5 });

const StoredPrompt = z.object({
  after: Count.optional().describe("index of the turn whose conversation it continues; absent: the turn before"),
  keep: Count.describe("how many messages of that turn's prompt and completion it begins with"),
  append: Prompt,
});

const ToolFailed = z.array(z.boolean().nullable()).meta({ example: [false, true] });

/** One rollout with all its turns. Before it is done, the turns are those stored so far. */
export const RolloutView = named("Rollout", {
  object: z.literal("rollout"),
  id: RolloutId,
  run_id: RunId,
  group: Count,
  slot: Count,
  attempt: Count,
  superseded_by: MaybeText.describe("the later attempt that replaces it"),
  forked_from: ForkedFrom.nullable().describe("the rollout whose turns, up to this one, it begins with"),
  rescored_from: MaybeText.describe("the rollout whose trajectory it rescores"),
  status: z.enum(ROLLOUT_STATUSES).meta({ example: "done" }),
  outcome: z.enum(OUTCOMES).nullable().meta({ example: "scored" }),
  reason: MaybeText.describe("the error class, cause or reason of the outcome"),
  task_key: MaybeText.meta({ example: EXAMPLE.task }),
  example_id: Count,
  prompt: Prompt,
  completion: Completion,
  reward: MaybeNumber.meta({ example: 1 }),
  advantage: Advantage,
  scores: z.array(Score).meta({
    example: [
      { name: "correct_answer", score: 1, weight: 1 },
      { name: "answer_length", score: 25, weight: 0 },
    ],
  }),
  scoring_errors: z.array(ScoringErrorView),
  stop_condition: StopCondition,
  is_truncated: z.boolean(),
  error: ErrorView.nullable(),
  cleanup_errors: z.array(ErrorView),
  failed_calls: z
    .array(FailedCallView)
    .describe("the latest 100 failed model calls: each was retried, or ended the rollout"),
  usage: RunReport.shape.usage,
  cost: Cost,
  judgements: z
    .array(Judgement)
    .describe("its judgements, at the time it ended; for a group, on the member that ended first"),
  turns: z
    .array(
      z.object({
        index: Count,
        prompt: StoredPrompt,
        completion: AnyObject.meta({ example: EXAMPLE.completion }),
        finish_reason: MaybeText.describe(
          "stop, tool_calls, length, or the server's own value if it is none of these; null without one",
        ).meta({ example: "stop" }),
        usage: Usage.nullable().meta({ example: {} }),
        latency_ms: z.number().meta({ example: 840 }),
        calls: Count.meta({ example: 1 }),
        from_cache: z
          .boolean()
          .optional()
          .describe("true: its answer came from the project's cache, so its usage is not part of the rollout's"),
        policy_version: MaybeText.describe(
          "version of the weights that sampled the last token, as named by the engine",
        ),
        first_policy_version: z
          .string()
          .optional()
          .describe("version that sampled the first token, if the weights changed meanwhile"),
        dispatch_version: Count.optional().describe("training runs: the version at the dispatch of its group"),
        replica: z.string().optional().describe("fleet runs: the replica that answered"),
        replica_version: Count.optional().describe("version of its weights when the call was sent, if known"),
        platform_ms: z
          .number()
          .optional()
          .describe("milliseconds of the call besides latency_ms, without hooks and waits for leases"),
        sent_prompt: z
          .enum(["token_ids", ...MESSAGES_CAUSES])
          .optional()
          .describe(
            "runs with prompts token_ids or chat_token_ids, from the second turn on: token_ids, or why the prompt was sent as messages",
          ),
        is_truncated: z.boolean(),
        trained: z
          .boolean()
          .optional()
          .describe("false: its agent excluded the call from training; absent: it did not"),
        tool_failed: ToolFailed.optional().describe(
          "for each of its tool calls, in order: whether it failed, as recorded when it was answered; null if not recorded; absent if none was recorded",
        ),
        reward: MaybeNumber.describe("the turn's own, or the rollout's").meta({ example: 1 }),
        advantage: Advantage,
      }),
    )
    .meta({ example: [{}] }),
  state: AnyObject.describe("the environment's own fields"),
  started_at: Seconds.nullable().meta({ example: 1_792_000_001 }),
  ended_at: Seconds.nullable().meta({ example: 1_792_000_002 }),
});
export type RolloutView = z.infer<typeof RolloutView>;

const ToolOffered = z.object({
  name: z.string(),
  description: z.string(),
  parameters: AnyObject.describe("JSON Schema"),
  strict: z.boolean().optional(),
});

/** One line of results: verifiers' row keys, then ours. */
export const ResultRow = named("ResultRow", {
  example_id: Count,
  prompt: Prompt,
  completion: Completion,
  answer: z.string().optional().meta({ example: EXAMPLE.row.answer }),
  info: z.unknown().optional(),
  reward: MaybeNumber.meta({ example: 1 }),
  advantage: Advantage,
  error: ErrorView.nullable(),
  timing: z
    .object({ start_time: z.number(), total: z.number().describe("seconds") })
    .meta({ example: { start_time: 1_792_000_001, total: 0.84 } }),
  is_completed: z.boolean().meta({ example: true }),
  is_truncated: z.boolean(),
  stop_condition: StopCondition,
  metrics: z.record(z.string(), MaybeNumber).meta({ example: { correct_answer: 1, answer_length: 25 } }),
  tool_defs: z.array(ToolOffered).optional().describe("the tools offered to the model; absent if none"),
  token_usage: z.object({
    input_tokens: Count.describe("over all calls").meta({ example: 92 }),
    output_tokens: Count.meta({ example: 61 }),
    cached_input_tokens: Count.optional().describe(
      "input tokens that the endpoint read from its cache; absent if none",
    ),
    final_input_tokens: Count.optional().describe("of the last call's context, the given tokens").meta({ example: 92 }),
    final_output_tokens: Count.optional()
      .describe("of the last call's context, the sampled tokens")
      .meta({ example: 61 }),
  }),
  lost_usage: LostUsage.optional().describe("calls with unknown usage; absent if none"),
  judge_usage: JudgeTokens.optional(),
  cost: Cost.optional(),
  rollout_id: RolloutId,
  task_key: TaskKey,
  group: Count,
  slot: Count,
  attempt: Count,
  superseded_by: MaybeText,
  outcome: z.enum(OUTCOMES),
  reason: MaybeText,
  scoring_errors: z.array(ScoringErrorView),
  turns: Count.meta({ example: 1 }),
  tool_failed: ToolFailed.optional().describe(
    "for each tool message in completion, in order: whether the call that it answers failed; null if not recorded; absent if none was recorded",
  ),
  reviews: RowReviews.optional().describe("absent if the rollout has none"),
});
export type ResultRow = z.infer<typeof ResultRow>;

export const EnvironmentView = named("Environment", {
  object: z.literal("environment"),
  ...BuiltEnvironment.shape,
  args: AnyObject.describe("JSON Schema of environment_args").meta({
    example: { type: "object", properties: { system_prompt: { type: "string" } } },
  }),
  dataset: z
    .enum(["uploaded", "rows", "generated"])
    .nullable()
    .describe("null if it cannot be built without arguments")
    .meta({ example: "uploaded" }),
  row: AnyObject.nullable()
    .describe("JSON Schema of one task row; null if `dataset` is null")
    .meta({
      example: {
        type: "object",
        properties: { question: { type: "string" }, answer: { type: "string" } },
        required: ["question", "answer"],
      },
    }),
  needs: z.array(z.string()).describe("what its code may use, such as `sql` or `secret:NAME`"),
  judges: z.array(z.string()).describe("judges that a run must set in `judges`"),
  max_reward: MaxReward,
  published: PublishedVersion.nullable().describe("null if it comes with the deployment").meta({ example: null }),
});
export type EnvironmentView = z.infer<typeof EnvironmentView>;
export const EnvironmentList = listOf(EnvironmentView, "EnvironmentList", "gsm8k");
