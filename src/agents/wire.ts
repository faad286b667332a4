/** Requests and replies about agents: leases of rollouts, and the end of a rollout. */
import * as z from "zod";
import { AgentName, AgentSettings } from "../contract/agent.ts";
import { EvalRequest, refusePlace } from "../contract/eval-request.ts";
import { LIMITS } from "../contract/limits.ts";
import { AnyObject, Count, EXAMPLE, MaybeText, NonEmpty, Positive, RolloutId, RunId } from "../contract/primitives.ts";
import { exceedsUtf8 } from "../core/size.ts";

const MOST_AT_ONCE = 256;
const Millis = z.int().describe("milliseconds since the epoch").meta({ example: 1_792_000_060_000 });
const WorkerName = NonEmpty.max(200).describe("a name of the worker's own choice").meta({ example: "host-1/4711" });

export { AgentName };

export const AgentLeaseRequest = z.strictObject({
  worker: WorkerName,
  max: Positive.max(MOST_AT_ONCE).default(1).describe("rollouts to lease at most"),
  wait_s: z.number().min(0).max(30).default(20).describe("how long the request waits for the first one"),
});
export type AgentLeaseRequest = z.output<typeof AgentLeaseRequest>;
export type AgentLeaseRequestInput = z.input<typeof AgentLeaseRequest>;

export const LeasedRollout = z.object({
  rollout_id: RolloutId,
  run_id: RunId,
  lease: Positive.describe("number of the lease: a later lease ends this one").meta({ example: 1 }),
  group: Count,
  slot: Count,
  attempt: Count,
  example_id: Count,
  task: AnyObject.describe("the row").meta({ example: EXAMPLE.row }),
  prompt: z
    .array(AnyObject)
    .describe("messages that the environment makes of the row; an agent may use them or not")
    .meta({ example: EXAMPLE.prompt }),
  model: z.string().meta({ example: "qwen3-4b" }),
  base_url: z
    .string()
    .describe("for clients of OpenAI: chat completions and Responses")
    .meta({ example: `https://rollcall.example/model/${EXAMPLE.rollout}/v1` }),
  anthropic_base_url: z
    .string()
    .describe("for clients of Anthropic")
    .meta({ example: `https://rollcall.example/model/${EXAMPLE.rollout}` }),
  key: z.string().describe("the API key of these addresses, and of the end of the rollout").meta({ example: "rkm_…" }),
  lease_s: Positive.describe("a lease without a heartbeat for this long expires").meta({ example: 60 }),
  expires_at: Millis,
  deadline: Millis.nullable().describe("when the rollout ends at the latest; null if it has no time limit"),
});
export type LeasedRollout = z.infer<typeof LeasedRollout>;

const { environment, environment_args, model, endpoint, fleet, judges, sampling, limits, max_cost_micros, metadata } =
  EvalRequest.shape;
const { sampling: agentSampling, max_turns } = AgentSettings.shape;

/** A run of one rollout, for a program that plays it at once. */
export const RolloutRequest = z
  .strictObject({
    environment: environment.default("agent"),
    environment_args,
    row: AnyObject.optional().describe("the row of the task; absent: the environment's own first row"),
    model,
    ...{ endpoint, fleet, judges, sampling, limits, max_cost_micros, metadata },
    agent: z.strictObject({ sampling: agentSampling, max_turns }).prefault({}).meta({ example: {} }),
  })
  .superRefine(refusePlace)
  .meta({ example: { row: EXAMPLE.row } });
export type RolloutRequest = z.output<typeof RolloutRequest>;
export type RolloutRequestInput = z.input<typeof RolloutRequest>;

export const CreatedRollout = z.object({
  run_id: RunId,
  agent: AgentName.describe("with which the rollout can be leased, if it waits"),
  rollout: LeasedRollout.nullable().describe("null if it waits for its endpoint: lease it later"),
});
export type CreatedRollout = z.infer<typeof CreatedRollout>;

export const LeasedRollouts = z.object({ rollouts: z.array(LeasedRollout) });

const Held = z.strictObject({ rollout_id: NonEmpty.max(100).meta({ example: EXAMPLE.rollout }), lease: Positive });

export const AgentHeartbeat = z.strictObject({
  worker: WorkerName,
  leases: z
    .array(Held)
    .max(MOST_AT_ONCE)
    .meta({ example: [{ rollout_id: EXAMPLE.rollout, lease: 1 }] }),
});
export type AgentHeartbeat = z.output<typeof AgentHeartbeat>;

export const LeaseStates = z.object({
  data: z.array(
    z.object({
      rollout_id: RolloutId,
      lease: Positive,
      state: z
        .enum(["held", "lost", "ended"])
        .describe("lost: another lease counts; ended: the rollout has ended. Stop working on both"),
      expires_at: Millis.nullable().describe("null if it is not held"),
    }),
  ),
});
export type LeaseStates = z.infer<typeof LeaseStates>;

const ScoreName = NonEmpty.max(LIMITS.nameCharacters);
const Score = z.number().nullable();
const Reward = z.union([Score, z.strictObject({ score: Score, weight: z.number() })]);

/**
 * Kinds of errors that an agent reports, and the failure class of the rollout for each. No class is free of charge: what
 * the platform does not see it does not pay for. If its own call of the model fails, it ends the rollout itself.
 */
export const AGENT_FAILURES = {
  agent: "agent",
  model: "agent",
  tool: "agent",
  environment: "environment",
  infrastructure: "agent",
  timeout: "agent",
} as const;

/** Characters of all reported scores as they are stored; the rest of what a rollout may have is for its rubric. */
const REPORTED_CHARACTERS = LIMITS.scoresCharacters / 2;

const FinishFields = z.strictObject({
  answer: MaybeText.default(null).describe("the last message of the completion, unless the model said the same last"),
  state: AnyObject.default({}).describe("merged over the environment's state, which scoring functions read"),
  rewards: z
    .record(ScoreName, Reward)
    .optional()
    .describe("by name: a score, or its score and weight (default 1); null: it could not be produced")
    .meta({ example: { solved: 1 } }),
  metrics: z.record(ScoreName, Score).optional(),
  stop_condition: ScoreName.nullable().default(null).describe("default: agent_completed"),
  is_truncated: z.boolean().default(false),
  error: z
    .strictObject({
      kind: z.enum(Object.keys(AGENT_FAILURES) as [keyof typeof AGENT_FAILURES]).default("agent"),
      error: ScoreName.describe("the class of the error").default("AgentError"),
      message: z.string().max(LIMITS.errorCharacters),
    })
    .nullable()
    .default(null)
    .describe("the rollout failed and is never scored"),
});

function weightedScore(reward: z.output<typeof Reward>): number {
  if (reward === null || typeof reward === "number") return reward ?? 0;
  return (reward.score ?? 0) * reward.weight;
}

/** What could not be stored is refused while its agent can still send less. */
export const RolloutFinish = FinishFields.superRefine(({ rewards = {}, metrics = {}, state }, context) => {
  const refuse = (path: string[], message: string) => context.addIssue({ code: "custom", path, message });
  const lengths = [rewards, metrics].map((scores) =>
    Object.entries(scores).reduce((sum, [name, score]) => sum + JSON.stringify({ name, score, weight: 1 }).length, 0),
  );
  const [ofRewards = 0, ofMetrics = 0] = lengths;
  if (ofRewards + ofMetrics > REPORTED_CHARACTERS) {
    const field = ofRewards > ofMetrics ? "rewards" : "metrics";
    refuse([field], `the scores are more than ${REPORTED_CHARACTERS} characters as JSON, the maximum`);
  }
  const twice = Object.keys(metrics).find((name) => Object.hasOwn(rewards, name));
  if (twice !== undefined) refuse(["metrics", twice], "is a reward too: use another name");
  const sum = Object.values(rewards).reduce((total: number, reward) => total + weightedScore(reward), 0);
  if (!Number.isFinite(sum)) refuse(["rewards"], "the sum of the scores times their weights is not a finite number");
  if (exceedsUtf8(JSON.stringify(state), LIMITS.stateBytes)) {
    refuse(["state"], `is more than ${LIMITS.stateBytes} bytes as JSON, the maximum`);
  }
});
export type RolloutFinish = z.output<typeof RolloutFinish>;
export type RolloutFinishInput = z.input<typeof RolloutFinish>;

export const FinishedRollout = z.object({ rollout_id: RolloutId, state: z.literal("ended") });
export type FinishedRollout = z.infer<typeof FinishedRollout>;
