/**
 * Graders as data: OpenAI's in their original form, and three additions (`scorer`, `http`, and `weight` for any).
 *
 * Invariants. A grader that cannot be computed here is refused by name, never skipped. Names are unique. A field that
 * OpenAI returns as null counts as absent.
 * Source: https://developers.openai.com/api/docs/api-reference/graders.
 */
import { type Need, RolloutError, SCORER_NAMES, scorers } from "rollcall";
import * as z from "zod";
import { canBeNamed, parseFormula } from "./formula.ts";
import { JudgeMessages } from "./messages.ts";
import { pathsIn, Template } from "./template.ts";

export const METRICS = [
  "fuzzy_match",
  "bleu",
  "gleu",
  "meteor",
  "cosine",
  "rouge_1",
  "rouge_2",
  "rouge_3",
  "rouge_4",
  "rouge_5",
  "rouge_l",
] as const;
const MOST_GRADERS = 32;
/** Maximal number of graders, including the parts of `multi` graders: all are computed for every rollout. */
const MOST_PARTS = 64;
/** Metrics that the environment adds itself. */
const PLATFORM_METRICS = ["num_turns"];
/** The run's judge for a `cosine`: an embedding model, for which OpenAI's grader has no field. */
export const EMBEDDING_JUDGE = "embedding";

const NAMED = {
  name: z.string().min(1).max(200),
  id: z.string().nullish().describe("as OpenAI gives one back; nothing is made of it"),
  weight: z
    .number()
    .optional()
    .describe("of its score in the reward; 0 makes it a metric; default 1 / number of graders"),
};
const SamplingParams = z
  .strictObject({
    seed: z.int().nullish(),
    temperature: z.number().min(0).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    max_completions_tokens: z.int().positive().nullish(),
    max_completion_tokens: z.int().positive().nullish(),
    reasoning_effort: z.string().nullish(),
  })
  .nullish();
const Threshold = z.number().nullish().describe("adds the metric NAME.passed: 1 from this score on");

export const StringCheck = z.strictObject({
  type: z.literal("string_check"),
  ...NAMED,
  input: Template,
  reference: Template,
  operation: z.enum(["eq", "ne", "like", "ilike"]),
});

export const TextSimilarity = z.strictObject({
  type: z.literal("text_similarity"),
  ...NAMED,
  input: Template,
  reference: Template,
  evaluation_metric: z.enum(METRICS, {
    error: ({ input }) => `no metric ${JSON.stringify(input)}: it is one of ${METRICS.join(", ")}`,
  }),
  pass_threshold: Threshold,
});

export const LabelModel = z
  .strictObject({
    type: z.literal("label_model"),
    ...NAMED,
    model: z.string().min(1).describe("the name of the run's judge that answers: judges.MODEL"),
    input: JudgeMessages,
    labels: z.array(z.string().min(1)).min(1).max(100),
    passing_labels: z.array(z.string()).min(1),
    sampling_params: SamplingParams,
  })
  .superRefine(({ labels, passing_labels }, context) => {
    const stray = passing_labels.find((label) => !labels.includes(label));
    if (stray === undefined) return;
    const message = `${JSON.stringify(stray)} is none of the labels`;
    context.addIssue({ code: "custom", path: ["passing_labels"], message });
  });

export const ScoreModel = z
  .strictObject({
    type: z.literal("score_model"),
    ...NAMED,
    model: z.string().min(1).describe("the name of the run's judge that answers: judges.MODEL"),
    input: JudgeMessages,
    range: z.tuple([z.number(), z.number()]).nullish().describe("default [0, 1]"),
    sampling_params: SamplingParams,
    pass_threshold: Threshold,
  })
  .superRefine(({ range }, context) => {
    if (!range || range[0] < range[1]) return;
    context.addIssue({ code: "custom", path: ["range"], message: "the lower end comes first" });
  });

export const Scorer = z
  .strictObject({
    type: z.literal("scorer"),
    ...NAMED,
    scorer: z.enum(SCORER_NAMES).describe("one of the platform's ready scorers"),
    input: Template.default("{{sample.output_text}}"),
    reference: Template.default("{{item.answer}}"),
    options: z.record(z.string(), z.json()).default({}),
    pass_threshold: Threshold,
  })
  .superRefine(({ scorer, options, reference }, context) => {
    const wrong = scorers[scorer].options.safeParse(options).error?.issues ?? [];
    for (const issue of wrong) {
      const path = ["options", ...issue.path];
      context.addIssue({ code: "custom", path, message: issue.message });
    }
    const unusable = wrong.length === 0 ? unusableReference(scorer, reference, options) : null;
    if (unusable === null) return;
    context.addIssue({ code: "custom", path: ["reference"], message: unusable });
  });

/** Why a constant reference gives no score to any row. */
function unusableReference(
  scorer: (typeof SCORER_NAMES)[number],
  reference: string,
  options: Readonly<Record<string, unknown>>,
): string | null {
  if (pathsIn(reference).length > 0) return null;
  try {
    scorers[scorer].score("", reference, options);
    return null;
  } catch (thrown) {
    if (!(thrown instanceof RolloutError)) throw thrown;
    return thrown.message;
  }
}

export const Http = z.strictObject({
  type: z.literal("http"),
  ...NAMED,
  url: z
    .string()
    .regex(/^https?:\/\/[^\s\\/?#@]+([/?#]\S*)?$/i, {
      error: "must be an http or https address without spaces, a user name or a password",
    })
    .check(z.url({ protocol: /^https?$/ }))
    .describe("POSTed what is to be scored: docs/graded-datasets.md"),
  secret: z
    .string()
    .regex(/^[A-Za-z_]\w{0,62}$/, "is the name of a secret: 1 to 63 letters, digits or _")
    .describe("the secret that signs the requests, by Standard Webhooks; set it under /v1/secrets"),
  timeout_s: z.number().positive().max(15).default(10),
  pass_threshold: Threshold,
});

const Python = z.looseObject({ type: z.literal("python") }).superRefine((_grader, context) => {
  const message = 'python is not run here: put the code behind an address and use {"type": "http"}';
  context.addIssue({ code: "custom", path: ["type"], message });
});

const PARTS = [StringCheck, TextSimilarity, LabelModel, ScoreModel, Scorer, Http, Python] as const;
const noSuchGrader: z.core.$ZodErrorMap = ({ input }) => {
  const type = input !== null && typeof input === "object" ? Reflect.get(input, "type") : undefined;
  const known = "string_check, text_similarity, label_model, score_model, multi, scorer, http";
  return `no grader of type ${JSON.stringify(type)}: it is one of ${known}`;
};
const Part = z.discriminatedUnion("type", PARTS, { error: noSuchGrader });

export const Multi = z
  .strictObject({
    type: z.literal("multi"),
    ...NAMED,
    // A map by name, a list, or a single grader: all three are in use.
    graders: z.preprocess(
      byName,
      z
        .record(z.string(), Part)
        .refine((parts) => Object.keys(parts).length <= MOST_GRADERS, `has ${MOST_GRADERS} at most`),
    ),
    calculate_output: z.string(),
    pass_threshold: Threshold,
  })
  .superRefine(({ graders, calculate_output }, context) => {
    for (const [path, message] of wrongInMulti(graders, calculate_output)) {
      context.addIssue({ code: "custom", path, message });
    }
  });

const Grader = z.discriminatedUnion("type", [...PARTS, Multi], { error: noSuchGrader });

export type GraderPart = Exclude<z.output<typeof Part>, { type: "python" }>;
export type Grader = GraderPart | z.output<typeof Multi>;

export const Graders = z
  .array(Grader)
  .min(1)
  .max(MOST_GRADERS)
  .superRefine((graders, context) => {
    const parts = graders.reduce((sum, grader) => sum + computed(grader), 0);
    if (parts > MOST_PARTS) {
      const message = `come to ${parts} with the parts of multi, of which there may be ${MOST_PARTS}`;
      context.addIssue({ code: "custom", message });
    }
    const taken = new Set(PLATFORM_METRICS);
    for (const [index, grader] of graders.entries()) {
      const names = scoreNames(grader);
      const twice = names.find((name) => taken.has(name));
      if (twice !== undefined) {
        const message = `two scores would be named ${twice}`;
        context.addIssue({ code: "custom", path: [index, "name"], message });
      }
      for (const name of names) taken.add(name);
    }
  });

function computed(grader: z.output<typeof Grader>): number {
  return grader.type === "multi" ? Object.keys(grader.graders).length : 1;
}

/** The name of the grader's score, and of its metrics. */
function scoreNames(grader: z.output<typeof Grader>): string[] {
  if (grader.type === "python") return [];
  const { name } = grader;
  const parts = grader.type === "multi" ? Object.keys(grader.graders) : [];
  const passes = passThreshold(grader) === null ? [] : ["passed"];
  return [name, ...[...parts, ...passes].map((metric) => `${name}.${metric}`)];
}

/** Null if the grader has none. */
export function passThreshold(grader: z.output<typeof Grader>): number | null {
  const threshold = "pass_threshold" in grader ? grader.pass_threshold : null;
  return typeof threshold === "number" ? threshold : null;
}

/** The graders that are computed: all others were refused. */
export function computable(graders: z.output<typeof Graders>): Grader[] {
  return graders.filter((grader): grader is Grader => grader.type !== "python");
}

export function partsOf(grader: Grader): GraderPart[] {
  if (grader.type !== "multi") return [grader];
  return Object.values(grader.graders).filter((part): part is GraderPart => part.type !== "python");
}

/** The needs of the graders: the addresses they call, and the secrets that sign those calls. */
export function needsOf(graders: readonly Grader[]): Need[] {
  const https = graders.flatMap(partsOf).filter((part) => part.type === "http");
  return [...new Set(https.flatMap(({ url, secret }): Need[] => [`fetch:${url}`, `secret:${secret}`]))];
}

export type JudgedPart = Extract<GraderPart, { type: "label_model" | "score_model" }>;

/** The run's judge that a grader asks; null if it asks none. */
export function judgeOf(part: GraderPart): string | null {
  if (part.type === "label_model" || part.type === "score_model") return part.model;
  if (part.type !== "text_similarity") return null;
  return part.evaluation_metric === "cosine" ? EMBEDDING_JUDGE : null;
}

/** Judges that a run must configure: the models of its graders, and one for embeddings. */
export function judgesOf(graders: readonly Grader[]): string[] {
  const asked = graders.flatMap(partsOf).map(judgeOf);
  return [...new Set(asked.filter((judge) => judge !== null))];
}

/** The key becomes the name: formulas use it for the grader. */
function byName(graders: unknown): unknown {
  if (graders === null || typeof graders !== "object") return graders;
  const single = "type" in graders && typeof graders.type === "string";
  const listed = single ? [graders] : Array.isArray(graders) ? graders : null;
  const entries = listed?.map((grader: unknown, at) => [nameOf(grader) ?? String(at), grader]);
  return Object.fromEntries(
    (entries ?? Object.entries(graders)).map(([name, grader]) => [
      name,
      grader !== null && typeof grader === "object" ? { ...grader, name } : grader,
    ]),
  );
}

function nameOf(grader: unknown): string | null {
  if (grader === null || typeof grader !== "object" || !("name" in grader)) return null;
  return typeof grader.name === "string" ? grader.name : null;
}

function* wrongInMulti(
  graders: Readonly<Record<string, z.output<typeof Part>>>,
  formula: string,
): Generator<[path: string[], message: string]> {
  for (const [name, { weight }] of Object.entries(graders)) {
    if (!canBeNamed(name)) yield [["graders", name], "a formula cannot name it"];
    if (weight !== undefined) yield [["graders", name, "weight"], "calculate_output weighs it"];
  }
  const at = ["calculate_output"];
  try {
    const unknown = parseFormula(formula).names.find((name) => !Object.hasOwn(graders, name));
    if (unknown !== undefined) yield [at, `no grader is named ${unknown}`];
  } catch (thrown) {
    yield [at, thrown instanceof Error ? thrown.message : String(thrown)];
  }
}
