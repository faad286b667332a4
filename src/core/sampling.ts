/** How the model is to sample: the same words on the wire of the API and of the endpoint. */
import * as z from "zod";
import { isRecord } from "./json.ts";

/**
 * Sampling arguments as OpenAI and vLLM spell them; whatever else the endpoint takes goes into `extra_body`. A null is not
 * sent: it takes back what the environment asks for.
 */
export const Sampling = z.strictObject({
  temperature: z.number().min(0).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.int().min(-1).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  max_tokens: z.int().positive().nullish(),
  max_completion_tokens: z.int().positive().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  seed: z.int().nullish(),
  presence_penalty: z.number().nullish(),
  frequency_penalty: z.number().nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  reasoning_effort: z.string().nullish(),
  extra_body: z.record(z.string(), z.unknown()).nullish(),
});
export type Sampling = z.infer<typeof Sampling>;

/** The run's arguments over the environment's, objects such as `extra_body` member by member (a list is one value). */
export function mergeSampling(environment: Sampling, run: Sampling): Sampling {
  return merged(environment, run) as Sampling;
}

/**
 * What a training run asks: beneath the environment's and the run's own arguments those that leave the distribution as the
 * weights give it, and the ids and logprobs a sample is made of. The salt keeps an engine from reading what older weights
 * left in its prefix cache. A null takes any of them back, for an endpoint that refuses it.
 */
export function trainingSampling(environment: Sampling, run: Sampling, version: number): Sampling {
  const asked = { return_token_ids: true, cache_salt: String(version) };
  const neutral = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, logprobs: true };
  const { extra_body, ...sampling } = mergeSampling(
    { ...neutral, extra_body: asked },
    mergeSampling(environment, run),
  );
  const kept = Object.entries(extra_body ?? {}).filter(
    ([name, value]) => value !== null || !Object.hasOwn(asked, name),
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
