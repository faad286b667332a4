/** Sampling arguments of a model. The API and the endpoint's wire use the same names. */
import * as z from "zod";
import { isRecord } from "./json.ts";
import { AnyObject, Count, Share } from "./primitives.ts";
import { seededRandom } from "./random.ts";

/** Fields that a run sets in other places. Servers that ignore case would also read `Model`. */
const FIXED_FIELDS = ["model", "messages", "input", "stream"];

/** Whether a request field is not a sampling argument: `extra_body` must not have it, and never sends it. */
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
 * Sampling arguments with the names of OpenAI and vLLM; all other arguments go into `extra_body`. A null is not sent:
 * it removes the environment's value.
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

/**
 * The run's arguments merged over the environment's; objects such as `extra_body` member by member (a list is one
 * value).
 */
export function mergeSampling(environment: Sampling, run: Sampling): Sampling {
  return merged(environment, run) as Sampling;
}

/** The position of a call in its run. */
export interface CallPlace {
  readonly group: number;
  readonly slot: number;
  readonly attempt: number;
  readonly turn: number;
}

/** Every engine accepts seeds below this: some read 32 bits, some with a sign. */
const SEEDS = 2 ** 31;

/**
 * The sampling arguments of one call. With one seed for all calls, rollouts of the same prompt would be identical, and
 * others correlated. So each place has its own seed, the same whenever the run is repeated.
 */
export function withCallSeed({ seed, ...sampling }: Sampling, { group, slot, attempt, turn }: CallPlace): Sampling {
  if (seed === undefined || seed === null) return { ...sampling, ...(seed === null && { seed }) };
  const draw = seededRandom("call", seed, group, slot, attempt, turn);
  return { ...sampling, seed: Math.floor(draw() * SEEDS) };
}

/** The weights that a training run's call is for. */
export interface PolicyWeights {
  readonly run_id: string;
  /** Resets of the run so far: after each reset the same version number means other weights. */
  readonly generation: number;
  readonly version: number;
}

/**
 * The salt of the engine's prefix cache, so that no call reads entries of other weights. The version number alone is
 * not enough: other runs count from 0, too, and so does a run after a reset.
 */
export function cacheSalt({ run_id, generation, version }: PolicyWeights): string {
  return [run_id, generation, version].join(".");
}

/** The members of `extra_body` that a training run requests; a sample is made of the ids and logprobs. */
const ASKED = { return_token_ids: true, repetition_penalty: 1 };
/** Every field is sent: a missing one gets the server's default, which may be the model's generation config. */
const NEUTRAL = {
  ...{ temperature: 1, top_p: 1, top_k: -1, min_p: 0, presence_penalty: 0, frequency_penalty: 0 },
  logprobs: true,
};

/**
 * The sampling of a training run. Under the environment's and the run's own arguments it sets those that leave the
 * weights' distribution unchanged, requests the ids and logprobs that samples are made of, and sets the `salt` (null:
 * none). A null removes any of them, for an endpoint that refuses it.
 */
export function trainingSampling(environment: Sampling, run: Sampling, salt: string | null): Sampling {
  const extra_body = { ...ASKED, ...(salt !== null && { cache_salt: salt }) };
  const asked = mergeSampling({ ...NEUTRAL, extra_body }, mergeSampling(environment, run));
  return withoutTakenBack(asked);
}

/**
 * The fields that every call of a training run has at their neutral values, whatever it requests, except those that
 * `run` removes.
 */
export function neutralFields(run: Sampling, salt: string): Readonly<Record<string, unknown>> {
  const asked: Record<string, unknown> = { ...NEUTRAL, ...ASKED, cache_salt: salt };
  const given: Record<string, unknown> = { ...run, ...run.extra_body };
  return Object.fromEntries(Object.entries(asked).filter(([name]) => given[name] !== null));
}

/** Members of `extra_body` that constrain the reply's form, and so remove tokens from the distribution. */
const FORMS = [
  ...["response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice"],
  ...["guided_grammar", "logit_bias", "bad_words", "allowed_token_ids"],
];

/**
 * The first field that makes an engine sample from a distribution that no trainer can compute: a penalty, a form, or
 * disabled parallel calls, which vLLM enforces with a grammar. Null if there is none.
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
 * The sampling of an eval of a training run's own weights: that of any eval, and the salt of those weights, since it
 * plays the same tasks on the same endpoint repeatedly.
 */
export function evalSampling(run: Sampling, salt: string): Sampling {
  return withoutTakenBack(mergeSampling({ extra_body: { cache_salt: salt } }, run));
}

/**
 * Members of `extra_body` are sent as they are, null included: so those that a training run sets and a null removes are
 * left out.
 */
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
