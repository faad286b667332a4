/**
 * The request of a training run. Its rollouts are grouped by task, scored, credited against their group and cut into
 * batches for an external trainer, which reports weight versions back (docs/training.md).
 */
import * as z from "zod";
import { EndpointOrName, ModelName } from "./endpoint.ts";
import { EvalRequest, refusePlace, refusePrompts } from "./eval-request.ts";
import type { JsonObject } from "./json.ts";
import { LIMITS } from "./limits.ts";
import type { MemberRows } from "./member-rows.ts";
import { AnyObject, Count, NonEmpty, Positive, Share, Step } from "./primitives.ts";
import { nameKeyOf } from "./published-environment.ts";
import { type Sampling, trainingSampling } from "./sampling.ts";
import { ShownText, WebAddress } from "./shown-text.ts";

export const Advantage = z.discriminatedUnion("name", [
  z.strictObject({
    name: z.literal("mean"),
    length_weighted_baseline: z
      .boolean()
      .optional()
      .describe("the baseline is the mean of the rewards weighted by sampled tokens, not the plain mean"),
  }),
  z.strictObject({
    name: z.literal("mean_std"),
    sd: z.enum(["population", "sample"]).default("sample"),
    eps: z.number().positive().default(1e-4).describe("added to the standard deviation"),
    singleton: z.enum(["zero", "raw"]).default("zero").describe("raw: a group of one keeps its reward"),
  }),
  z.strictObject({
    name: z.literal("rloo"),
    singleton: z.enum(["zero", "raw"]).default("zero"),
  }),
  z.strictObject({ name: z.literal("max_rl") }),
  z.strictObject({ name: z.literal("none").describe("the trainer computes its own") }),
]);
export type Advantage = z.output<typeof Advantage>;

export const LossAggregation = z.enum(["token", "prompt"]);
export type LossAggregation = z.output<typeof LossAggregation>;

const Enforce = z
  .boolean()
  .default(false)
  .describe("true: a rollout in which it finds something is not trained on; false: it is only counted");

export const SampleFilter = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("gibberish").describe("a rare token that was sampled although it was very unlikely"),
    vocab_size: z.int().min(2).max(LIMITS.vocabulary).describe("number of tokens of the model's vocabulary"),
    token_id_threshold: Count.max(LIMITS.vocabulary).default(100_000).describe("tokens with a greater id are rare"),
    logprob_offset: z
      .number()
      .min(0)
      .max(1000)
      .default(2)
      .describe("unlikely: the logprob is below -ln(vocab_size) - logprob_offset"),
    enforce: Enforce,
  }),
  z.strictObject({
    kind: z.literal("repetition").describe("a long run of sampled tokens that were nearly certain"),
    window: Positive.max(LIMITS.formattedTokens).default(3000).describe("number of such tokens in a row"),
    prob_threshold: z.number().gt(0).lt(1).default(0.99).describe("nearly certain: sampled with a greater probability"),
    enforce: Enforce,
  }),
]);
export type SampleFilter = z.output<typeof SampleFilter>;

/** The name under which a run calls, leases and pays for its reference, among its judges. */
export const REFERENCE_JUDGE = "reference_logprobs";

export const Reference = z.strictObject({
  endpoint: EndpointOrName.describe(
    "an endpoint by name or id, or defined inline; its server must return prompt_logprobs, as vLLM does",
  ),
  model: ModelName.describe("its tokenizer must be that of the trained model: it is sent token ids"),
  kl_weight: z
    .number()
    .min(0)
    .max(1000)
    .default(1)
    .describe("ref_kl_weights of each trained token: the weight of the KL to the reference; 0: rows have none"),
});

export const BatchSize = z.union([
  z.strictObject({ rollouts: Positive.max(LIMITS.batchRollouts) }),
  z.strictObject({ tokens: Positive }),
]);
export type BatchSize = z.output<typeof BatchSize>;

export const Curriculum = z.discriminatedUnion("name", [
  z.strictObject({ name: z.literal("cycle").describe("every task in turn") }),
  z.strictObject({
    name: z.literal("difficulty").describe("tasks drawn from pools by their latest mean reward"),
    hard: z.strictObject({ up_to: Share, weight: z.number().min(0) }).default({ up_to: 0.25, weight: 0.2 }),
    normal: z.strictObject({ up_to: Share, weight: z.number().min(0) }).default({ up_to: 0.75, weight: 1 }),
    easy: z.strictObject({ weight: z.number().min(0) }).default({ weight: 0.2 }),
    unseen: z.strictObject({ weight: z.number().min(0) }).default({ weight: 1 }),
  }),
]);
export type Curriculum = z.output<typeof Curriculum>;

/**
 * Fractions of the group's mean reward subtracted for length; `r' = r - mean * (output*o/max(o) + input*i/max(i) +
 * turns*t/max(t))`.
 */
export const LengthPenalty = z.strictObject({
  output: z.number().min(0).default(0.25),
  input: z.number().min(0).default(0.1),
  turns: z.number().min(0).default(0.1),
});
export type LengthPenalty = z.output<typeof LengthPenalty>;

export const TrainerTarget = z
  .strictObject({
    delivery: z.enum(["pull", "push", "both"]).default("pull"),
    url: WebAddress.optional().describe("where batches are offered; for push and both"),
    encoding: z.enum(["msgpack", "jsonl"]).default("msgpack").describe("format of the sample objects, always gzipped"),
    max_attempts: Positive.max(100).default(5).describe("failed leases of a batch before it is dead"),
    lease_s: z.int().min(5).max(86_400).default(900).describe("a lease without a heartbeat expires after this"),
  })
  .refine(({ delivery, url }) => delivery === "pull" || url !== undefined, {
    error: "push and both need the trainer's url",
    path: ["url"],
  });
export type TrainerTarget = z.output<typeof TrainerTarget>;

const {
  kind: _kind,
  num_examples: _n,
  rollouts_per_example: _k,
  min_scored: _m,
  answer_cache: _c,
  ...shared
} = EvalRequest.shape;

/** Settings of one member of a group of environments. */
const MemberRequest = z.strictObject({
  ratio: z
    .number()
    .positive()
    .max(LIMITS.memberRatio)
    .optional()
    .describe("weight among the members: its share of the groups that are opened; set it for every member or for none"),
  group_size: Positive.max(LIMITS.trainingGroup).optional().describe("default: the run's group_size"),
  advantage: Advantage.optional().describe("default: the run's advantage"),
});

export const InitialWeights = z.strictObject({
  location: ShownText.max(2048).describe("as the fleet's update mode expects it"),
});

const EVAL_FIELDS = {
  every: Step.describe("steps between evals"),
  environment: NonEmpty.optional().describe("default: the run's own, with the run's rows in the run's order"),
  environment_args: AnyObject.optional(),
  num_examples: Positive.max(10_000).default(200),
  rollouts_per_example: Positive.max(LIMITS.groupSize).default(1),
  at_start: z.boolean().default(true),
};
const TrainingEval = z.strictObject(EVAL_FIELDS);

const NamedEval = z.strictObject({
  name: ShownText.min(1)
    .max(LIMITS.nameCharacters)
    .optional()
    .describe("its name in the series, `eval/{name}/reward`; default: its environment"),
  ...EVAL_FIELDS,
  dataset: NonEmpty.optional().describe(
    "an uploaded dataset by id or name, instead of the environment's rows for evals",
  ),
});
/** One of a training run's evals, as it was requested. */
export type AskedEval = z.output<typeof NamedEval>;

const TrainingFields = z.strictObject({
  kind: z.literal("training"),
  ...shared,
  trainer: TrainerTarget.prefault({}),
  max_steps: Step.max(1_000_000),
  group_size: Positive.max(LIMITS.trainingGroup).default(8).describe("rollouts of one task"),
  min_group_size: Positive.optional().describe(
    "a group with fewer scored rollouts is dropped; default 2, or group_size if less",
  ),
  batch_size: BatchSize.default({ rollouts: 128 }).describe("rollouts or tokens of one step"),
  advantage: Advantage.prefault({ name: "mean" }),
  length_penalty: LengthPenalty.nullable().default(null),
  members: z
    .record(NonEmpty.max(LIMITS.nameCharacters), MemberRequest)
    .refine((members) => Object.keys(members).length <= LIMITS.groupMembers, {
      error: `at most ${LIMITS.groupMembers} members`,
    })
    .optional()
    .describe("for a group of environments: settings by the name of the member"),
  loss_aggregation: LossAggregation.default("token").describe(
    "token: each trained token of a batch has the same weight; prompt: each group has, and the batch's credits give the weight of its tokens",
  ),
  filters: z
    .strictObject({
      zero_variance: z
        .enum(["drop", "refill", "keep"])
        .default("drop")
        .describe(
          "groups whose rewards are all equal: drop = they count but are not trained on; refill = they are replaced; keep = shipped with advantage 0",
        ),
      samples: z
        .array(SampleFilter)
        .max(SampleFilter.options.length)
        .refine((filters) => new Set(filters.map(({ kind }) => kind)).size === filters.length, {
          error: "each kind at most once",
        })
        .default([])
        .describe("filters of single rollouts; others are played in the place of those that are left out"),
    })
    .prefault({}),
  reference: Reference.optional().describe(
    "a model, such as a teacher, whose logprobs of the rows' own tokens are in ref_logprobs",
  ),
  curriculum: Curriculum.prefault({ name: "cycle" }),
  lead: Count.max(100)
    .default(1)
    .describe("batches that may be shipped ahead of the published version; no rollout starts for a later one"),
  max_off_policy_steps: Count.max(1000)
    .default(2)
    .describe("maximum versions between the sampling and the trained weights: older groups are dropped"),
  initial_weights: InitialWeights.optional().describe(
    "fleet runs: location of version 0. Each replica loads it before it plays a rollout; without it, engines are assumed to have started with version 0",
  ),
  holdout: Count.max(LIMITS.holdoutTasks)
    .default(0)
    .describe("tasks never trained on: the first tasks of an eval with the run's environment, rows, seed and order"),
  eval: TrainingEval.optional().describe("the same as evals with one entry"),
  evals: z
    .array(NamedEval)
    .min(1)
    .max(LIMITS.trainingEvals)
    .optional()
    .describe("evals of the run's weights, each with an interval of its own"),
});
export const TrainingRequest = TrainingFields.superRefine(refusePlace)
  .superRefine(refusePrompts)
  .superRefine((asked, context) => {
    const refuse = (field: keyof typeof asked, message: string) =>
      context.addIssue({ code: "custom", path: [field], message });
    if (asked.initial_weights !== undefined && asked.fleet === undefined) {
      refuse("initial_weights", "needs a fleet: the platform cannot load weights on an endpoint");
    }
    const sizes = [asked.group_size, ...Object.values(asked.members ?? {}).map(({ group_size = 0 }) => group_size)];
    if (asked.reference !== undefined && Math.max(...sizes) > LIMITS.referenceGroup) {
      refuse("reference", `needs groups of at most ${LIMITS.referenceGroup} rollouts`);
    }
    if (Object.hasOwn(asked.judges, REFERENCE_JUDGE)) {
      refuse("judges", `${REFERENCE_JUDGE} is a reserved name: set reference`);
    }
    const advantages = [asked.advantage, ...Object.values(asked.members ?? {}).map(({ advantage }) => advantage)];
    if (asked.loss_aggregation === "prompt" && advantages.some((advantage) => advantage?.name === "none")) {
      refuse(
        "loss_aggregation",
        'prompt cannot be combined with the advantage "none": a trainer applies it by the advantage',
      );
    }
  })
  .superRefine(({ eval: one, evals }, context) => {
    if (one === undefined || evals === undefined) return;
    context.addIssue({ code: "custom", path: ["evals"], message: "cannot be combined with eval: add it to evals" });
  });
export type TrainingRequest = z.output<typeof TrainingRequest>;
export type TrainingRequestInput = z.input<typeof TrainingRequest>;

/** The fields of a training run's request that other runs do not have: part of its spec. */
export interface TrainingSpec
  extends Pick<
    TrainingRequest,
    | "trainer"
    | "max_steps"
    | "batch_size"
    | "advantage"
    | "length_penalty"
    | "curriculum"
    | "lead"
    | "max_off_policy_steps"
    | "holdout"
  > {
  readonly min_group_size: number;
  readonly zero_variance: TrainingRequest["filters"]["zero_variance"];
  /** Its endpoint and model are in the run's judges; absent: none. */
  readonly reference?: { readonly kl_weight: number };
  /** Absent: none. */
  readonly sample_filters?: readonly SampleFilter[];
  /** Absent: by token. */
  readonly loss_aggregation?: "prompt";
  readonly eval: TrainingRequest["eval"] | null;
  /** Several evals; absent in a run with `eval`, or with none. */
  readonly evals?: readonly AskedEval[];
  readonly initial_weights?: NonNullable<TrainingRequest["initial_weights"]>;
  /** All members of a group of environments, if the request has settings of any; absent if it has not. */
  readonly members?: readonly TrainedMember[];
  /** The sampling arguments of its calls, without the version's salt, as reported in batches. */
  readonly sampling?: Sampling;
}

/** A member of a group of environments, with its settings. */
export interface TrainedMember {
  readonly name: string;
  readonly group_size: number;
  readonly min_group_size: number;
  readonly advantage: Advantage;
  /** Present in all members if groups are opened by ratio; absent if they are opened in the order of the rows. */
  readonly share?: MemberShare;
}

export interface MemberShare {
  readonly ratio: number;
  readonly rows: MemberRows;
}

/** What was created for the run's trainer when the run was accepted, as the run stores it. */
export interface StoredTrainer {
  /** The platform's address in the request that created the run: offers have URLs at this address. */
  readonly base_url: string;
}

type Players = readonly {
  readonly sampling: Sampling;
  readonly member: string | null;
  readonly rows?: MemberRows | null;
}[];

/** All evals of a run; the index in this list identifies an eval. */
export function evalsOf(asked: Pick<TrainingSpec, "eval" | "evals"> | undefined): readonly AskedEval[] {
  return asked?.evals ?? (asked?.eval ? [asked.eval] : []);
}

/** The name of an eval in the series. */
export function evalName(
  { name, environment }: Pick<AskedEval, "name" | "environment">,
  own: { readonly id: string },
): string {
  return name ?? environment ?? own.id;
}

/** Whether evals use the run's own environment: then they have the run's arguments, and its rows in its order. */
export function evalsOwn(
  { environment, dataset }: Pick<AskedEval, "environment" | "dataset">,
  { id }: { readonly id: string },
): boolean {
  if (dataset !== undefined) return false;
  return environment === undefined || nameKeyOf(environment.split("@")[0] ?? "") === nameKeyOf(id);
}

/** What an eval of the training run `of` plays: by default its environment, with its arguments and row order. */
export function evalPlayed(
  { environment, environment_args, num_examples, rollouts_per_example, dataset }: AskedEval,
  of: {
    readonly environment: { readonly id: string; readonly version: string };
    readonly environment_args: JsonObject;
    readonly shuffle: boolean;
  },
) {
  const { id, version } = of.environment;
  return {
    environment: environment ?? `${id}@${version}`,
    environment_args: environment_args ?? (environment === undefined ? of.environment_args : {}),
    shuffle: of.shuffle && evalsOwn({ environment, dataset }, of.environment),
    ...{ num_examples, rollouts_per_example },
    ...(dataset !== undefined && { dataset }),
  };
}

/** `players`: the environments that play the run's rows. */
export function trainingSpecOf(asked: TrainingRequest, players: Players): TrainingSpec {
  const { trainer, max_steps, batch_size, advantage, length_penalty, curriculum } = asked;
  const { lead, max_off_policy_steps, holdout } = asked;
  return {
    ...{ trainer, max_steps, batch_size, advantage, length_penalty, curriculum, lead, max_off_policy_steps, holdout },
    min_group_size: asked.min_group_size ?? Math.min(2, asked.group_size),
    zero_variance: asked.filters.zero_variance,
    ...(asked.reference !== undefined && { reference: { kl_weight: asked.reference.kl_weight } }),
    ...(asked.filters.samples.length > 0 && { sample_filters: asked.filters.samples }),
    ...(asked.loss_aggregation === "prompt" && { loss_aggregation: asked.loss_aggregation }),
    eval: asked.eval ?? null,
    ...(asked.evals !== undefined && { evals: asked.evals }),
    ...(asked.initial_weights !== undefined && { initial_weights: asked.initial_weights }),
    ...(asked.members !== undefined && { members: membersOf(asked, asked.members, players) }),
    sampling: samplingOf(players, asked.sampling),
  };
}

/** Groups are opened by ratio if any member has a ratio or a group size. Without ratios, they are the members' rows. */
function membersOf(
  asked: TrainingRequest,
  settings: NonNullable<TrainingRequest["members"]>,
  players: Players,
): TrainedMember[] {
  const shared = Object.values(settings).some((own) => own.ratio !== undefined || own.group_size !== undefined);
  const endless = players.some(({ rows }) => rows?.length === null);
  return players.map(({ member, rows }) => {
    const name = member ?? "";
    const own = Object.hasOwn(settings, name) ? (settings[name] ?? {}) : {};
    const { group_size = asked.group_size, advantage = asked.advantage, ratio } = own;
    const usual = endless ? 1 : (rows?.length ?? 1);
    return {
      ...{ name, group_size, advantage },
      min_group_size: asked.min_group_size ?? Math.min(2, group_size),
      ...(shared && rows != null && { share: { ratio: ratio ?? usual, rows } }),
    };
  });
}

/**
 * The sampling arguments of the run and of the environments that play its rows, if those environments all have the
 * same.
 */
function samplingOf(players: Players, run: Sampling): Sampling {
  const [first, ...others] = players.map(({ sampling }) => sampling);
  const asked = JSON.stringify(first);
  const alike = others.every((other) => JSON.stringify(other) === asked);
  return trainingSampling(alike ? (first ?? {}) : {}, run, null);
}

/**
 * The part of the request that every run has: a group is a task, its members are the task's rollouts, and no share of
 * scores ends it.
 */
export function asEval(asked: TrainingRequest): EvalRequest {
  const { name, environment, environment_args, dataset, model, endpoint, fleet, judges } = asked;
  const { judge_cache, sampling, prompts, shuffle, seed, max_concurrent, limits, metadata } = asked;
  return {
    ...{ environment, environment_args, model, judges, judge_cache, sampling, prompts, shuffle },
    ...{ seed, max_concurrent, limits, metadata, kind: "eval", num_examples: -1, min_scored: 0 },
    answer_cache: false,
    ...(name !== undefined && { name }),
    ...(endpoint !== undefined && { endpoint }),
    ...(fleet !== undefined && { fleet }),
    ...(asked.agent !== undefined && { agent: asked.agent }),
    ...(asked.max_cost_micros !== undefined && { max_cost_micros: asked.max_cost_micros }),
    ...(dataset !== undefined && { dataset }),
    rollouts_per_example: asked.group_size,
  };
}
