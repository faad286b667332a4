/** How the model is to sample: the same words on the wire of the API and of the endpoint. */
import * as z from "zod";
import { isRecord } from "./json.ts";
import { AnyObject, Count, Share } from "./primitives.ts";
import { seededRandom } from "./random.ts";

/** What a run names elsewhere. Servers that read names in any case would take `Model` as well. */
const FIXED_FIELDS = ["model", "messages", "input", "stream"];

/** Whether a field of a request is none of its sampling: `extra_body` must not hold it, and it is never sent from there. */
export function isFixedField(field: string): boolean {
  return FIXED_FIELDS.includes(field.toLowerCase());
}

const ExtraBody = AnyObject.superRefine((given, context) => {
  for (const field of Object.keys(given).filter(isFixedField)) {
    const message = `is not a sampling option: ${FIXED_FIELDS.join(", ")} cannot be set here`;
    context.addIssue({ code: "custom", path: [field], message });
  }
});

/**
 * Sampling arguments as OpenAI and vLLM spell them; whatever else the endpoint takes goes into `extra_body`. A null is not
 * sent: it takes back what the environment asks for.
 */
export const Sampling = z.strictObject({
  temperature: z.number().min(0).nullish(),
  top_p: Share.nullish(),
  top_k: z.int().min(-1).nullish(),
  min_p: Share.nullish(),
  max_tokens: z.int().positive().nullish(),
  max_completion_tokens: z.int().positive().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  seed: z.int().nullish().describe("seed of the run: each call's own seed is derived from it and the call's position"),
  presence_penalty: z.number().nullish(),
  frequency_penalty: z.number().nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: Count.max(20).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  reasoning_effort: z.string().nullish(),
  extra_body: ExtraBody.nullish(),
});
export type Sampling = z.infer<typeof Sampling>;

/** The run's arguments over the environment's, objects such as `extra_body` member by member (a list is one value). */
export function mergeSampling(environment: Sampling, run: Sampling): Sampling {
  return merged(environment, run) as Sampling;
}

/** Which call of a run it is. */
export interface CallPlace {
  readonly group: number;
  readonly slot: number;
  readonly attempt: number;
  readonly turn: number;
}

/** Seeds below this are taken by every engine: some read 32 bits, some with a sign. */
const SEEDS = 2 ** 31;

/**
 * What is asked of one call. With one seed for all of them, rollouts of the same prompt would be one rollout, and others
 * tied to each other: so each place has a seed of its own, the same whenever the run is asked for again.
 */
export function withCallSeed({ seed, ...sampling }: Sampling, { group, slot, attempt, turn }: CallPlace): Sampling {
  if (seed === undefined || seed === null) return { ...sampling, ...(seed === null && { seed }) };
  const draw = seededRandom("call", seed, group, slot, attempt, turn);
  return { ...sampling, seed: Math.floor(draw() * SEEDS) };
}

/** Which weights a training run's call is for. */
export interface PolicyWeights {
  readonly run_id: string;
  /** Resets of the run so far: the same number names other weights after each. */
  readonly generation: number;
  readonly version: number;
}

/**
 * What an engine keeps its prefix cache apart by, so that no call reads what other weights left in it. The number of a version
 * alone would not do: another run counts from 0 as well, and so does a run that went back.
 */
export function cacheSalt({ run_id, generation, version }: PolicyWeights): string {
  return [run_id, generation, version].join(".");
}

/** Of `extra_body`, what a training run asks; the ids and logprobs are what a sample is made of. */
const ASKED = { return_token_ids: true, repetition_penalty: 1 };
/** Every field is sent: one that is left out takes the default of the server, which may be the model's own generation config. */
const NEUTRAL = {
  ...{ temperature: 1, top_p: 1, top_k: -1, min_p: 0, presence_penalty: 0, frequency_penalty: 0 },
  logprobs: true,
};

/**
 * What a training run asks: beneath the environment's and the run's own arguments those that leave the distribution as the
 * weights give it, the ids and logprobs a sample is made of, and the `salt` (null: none). A null takes any of them back, for an
 * endpoint that refuses it.
 */
export function trainingSampling(environment: Sampling, run: Sampling, salt: string | null): Sampling {
  const extra_body = { ...ASKED, ...(salt !== null && { cache_salt: salt }) };
  const asked = mergeSampling({ ...NEUTRAL, extra_body }, mergeSampling(environment, run));
  return withoutTakenBack(asked);
}

/**
 * The fields that every call of a training run has, short of those that `run` takes back: at their neutral values, whatever it asks.
 */
export function neutralFields(run: Sampling, salt: string): Readonly<Record<string, unknown>> {
  const asked: Record<string, unknown> = { ...NEUTRAL, ...ASKED, cache_salt: salt };
  const given: Record<string, unknown> = { ...run, ...run.extra_body };
  return Object.fromEntries(Object.entries(asked).filter(([name]) => given[name] !== null));
}

/** Of `extra_body`, what holds the reply to a form, and so takes tokens out of the distribution. */
const FORMS = [
  ...["response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice"],
  ...["guided_grammar", "logit_bias", "bad_words", "allowed_token_ids"],
];

/**
 * The first field that has an engine sample from a distribution no trainer can compute: a penalty, a form, or no parallel calls,
 * which vLLM brings about by a grammar. Null where there is none.
 */
export function bentBy(asked: Sampling): string | null {
  const { presence_penalty, frequency_penalty, parallel_tool_calls, extra_body } = asked;
  if (presence_penalty) return "sampling.presence_penalty";
  if (frequency_penalty) return "sampling.frequency_penalty";
  if (parallel_tool_calls === false) return "sampling.parallel_tool_calls";
  const extra = extra_body ?? {};
  const choice = extra["tool_choice"] ?? "auto";
  if (choice !== "auto" && choice !== "none") return "sampling.extra_body.tool_choice";
  if ((extra["repetition_penalty"] ?? 1) !== 1) return "sampling.extra_body.repetition_penalty";
  if (extra["parallel_tool_calls"] === false) return "sampling.extra_body.parallel_tool_calls";
  const form = FORMS.find((name) => (extra[name] ?? null) !== null);
  return form === undefined ? null : `sampling.extra_body.${form}`;
}

/**
 * What an eval of a training run's own weights asks: what any eval of it would, and the salt of those weights, since it plays
 * the same tasks on the same endpoint again and again.
 */
export function evalSampling(run: Sampling, salt: string): Sampling {
  return withoutTakenBack(mergeSampling({ extra_body: { cache_salt: salt } }, run));
}

/** Members of `extra_body` are sent as they are, null as well: those that a training run asks for are left out instead. */
function withoutTakenBack({ extra_body, ...sampling }: Sampling): Sampling {
  const kept = Object.entries(extra_body ?? {}).filter(
    ([name, value]) => value !== null || !(Object.hasOwn(ASKED, name) || name === "cache_salt"),
  );
  return { ...sampling, extra_body: Object.fromEntries(kept) };
}

function merged(under: Readonly<Record<string, unknown>>, over: Readonly<Record<string, unknown>>) {
  const members = { ...under };
  for (const [name, value] of Object.entries(over)) {
    const below = members[name];
    members[name] = isRecord(below) && isRecord(value) ? merged(below, value) : value;
  }
  return members;
}
