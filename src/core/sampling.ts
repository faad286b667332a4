/** How the model is to sample: the same words on the wire of the API and of the endpoint. */
import * as z from "zod";

/** Sampling arguments as OpenAI and vLLM spell them; whatever else the endpoint takes goes into `extra_body`. */
export const Sampling = z.strictObject({
  temperature: z.number().min(0).optional(),
  top_p: z.number().min(0).max(1).optional(),
  top_k: z.int().min(-1).optional(),
  min_p: z.number().min(0).max(1).optional(),
  max_tokens: z.int().positive().optional(),
  max_completion_tokens: z.int().positive().optional(),
  stop: z.union([z.string(), z.array(z.string())]).optional(),
  seed: z.int().optional(),
  presence_penalty: z.number().optional(),
  frequency_penalty: z.number().optional(),
  logprobs: z.boolean().optional(),
  top_logprobs: z.int().min(0).max(20).optional(),
  parallel_tool_calls: z.boolean().optional(),
  reasoning_effort: z.string().optional(),
  extra_body: z.record(z.string(), z.unknown()).optional(),
});
export type Sampling = z.infer<typeof Sampling>;
