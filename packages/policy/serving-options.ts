/**
 * How the policy is served, in vLLM's names: settings of a real engine under which a trainer can be given wrong data, so that tests
 * and people can try what they do. By default none of them does harm.
 */
import * as z from "zod";

const Penalty = z.number().min(-2).max(2);

/** What a request takes for a field that it leaves out. */
const SamplingDefaults = z.strictObject({
  temperature: z.number().min(0).optional(),
  top_p: z.number().gt(0).max(1).optional(),
  top_k: z.int().min(-1).optional(),
  min_p: z.number().min(0).max(1).optional(),
  repetition_penalty: z.number().positive().optional(),
  presence_penalty: Penalty.optional(),
  frequency_penalty: Penalty.optional(),
});

export const ServingOptions = z.strictObject({
  /** `raw_logprobs`: of the logits as the weights give them, before penalties, grammar and temperature. */
  logprobs_mode: z.enum(["processed_logprobs", "raw_logprobs"]).default("processed_logprobs"),
  /** As a model's `generation_config.json` would have it; empty: vLLM's `--generation-config vllm`. */
  generation_config: SamplingDefaults.default({}),
  /** `auto`: calls are sampled under a grammar where a tool is strict; `parameter`: always. `off`, which vLLM does not have: none ever is. */
  tool_strict_level: z.enum(["parameter", "auto", "off"]).default("off"),
  /** New weights leave the prefix cache as it is, until POST /reset_prefix_cache. */
  keep_prefix_cache: z.boolean().default(false),
});
export type ServingOptions = z.output<typeof ServingOptions>;
export type ServingOptionsInput = z.input<typeof ServingOptions>;
