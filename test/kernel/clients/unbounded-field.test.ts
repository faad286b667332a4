import { expect, test } from "vitest";
import { sizeOfCall } from "../../../src/kernel/clients/call-size.ts";
import { unboundedField } from "../../../src/kernel/clients/unbounded-field.ts";

test.each([
  ["max_output_tokens", "max_new_tokens", "maxOutputTokens", "max-tokens", "Max_Tokens", "max_tokenſ", "MAX_TOKENS"],
  ["max_length", "max_gen_len", "num_predict", "n_predict", "max_tokens_to_sample", "output_token_limit"],
])("another limit on tokens is not part of the bound, in any spelling: %s %s %s %s %s %s", (...names) => {
  for (const name of names) {
    expect(unboundedField({ [name]: 5 })).toMatchObject({ path: name, why: expect.stringContaining("max_tokens") });
  }
});

test.each([
  [["N", "num_return_sequences", "candidateCount", "bestOf", "num_beams", "use_beam_search"], "rollouts_per_example"],
  [["models", "Models", "model_id", "fallbacks", "route", "preset", "lora_path", "adapter_id"], "use model"],
  [["plugins", "web_search_options", "enable_search", "tools", "chat_template", "cached_content"], "remove it"],
])("neither are more replies, other models, or what an endpoint adds to a prompt: %o", (names, instead) => {
  for (const name of names) {
    expect(unboundedField({ [name]: [2] })).toMatchObject({ path: name, why: expect.stringContaining(instead) });
  }
});

test.each([
  [{ options: { num_predict: 9 } }, "options.num_predict"],
  [{ parameters: { max_tokens: 9 } }, "parameters.max_tokens"],
  [{ generation_config: { candidate_count: 2 } }, "generation_config.candidate_count"],
  [{ parameters: { best_of: 2, n: 2 } }, "parameters.best_of"],
  [{ extra_body: { google: { generationConfig: { maxOutputTokens: 9 } } } }, ""],
  [{ transforms: [{}, { model: "other" }] }, "transforms.1.model"],
])("a field is found inside objects and lists, and named by its path: %o", (extra_body, path) => {
  expect(unboundedField(extra_body)?.path).toBe(path || "extra_body.google.generationConfig.maxOutputTokens");
});

test("a call with such a field has no bound, and one in which it is set to null has", () => {
  const most = (extra_body: object) =>
    sizeOfCall({ model: "m", messages: [], tools: [], sampling: { max_tokens: 10, extra_body: { ...extra_body } } })
      .most_tokens;
  expect(most({ options: { num_predict: 1000 } })).toBeNull();
  expect(most({ max_new_tokens: null, enable_search: false })).toBe(10);
});

test.each([
  { max_tokens: 5, max_completion_tokens: 5, n: 2, best_of: 2 },
  { provider: { order: ["a"], allow_fallbacks: false, max_price: { completion: 1 } } },
  { return_token_ids: true, repetition_penalty: 1, cache_salt: "r.0.1", stop_token_ids: [1], min_tokens: 0 },
  { truncate_prompt_tokens: -1, skip_special_tokens: false, no_repeat_ngram_size: 2, length_penalty: 1 },
  { chat_template_kwargs: { enable_thinking: false, thinking_budget: 100 }, thinking: { budget_tokens: 100 } },
  { response_format: { type: "json_schema", json_schema: { schema: { properties: { n: { maxLength: 3 } } } } } },
  { guided_json: { properties: { model: { type: "string" } } }, structured_outputs: { json: { maxLength: 3 } } },
  { context_length_exceeded_behavior: "error", enable_thinking: false, service_tier: "flex", user: "max_tokens" },
  { max_tool_calls: 2, return_tokens_as_token_ids: true, logit_bias: { "5": 1 }, prompt_cache_key: "k" },
])("a field that changes no number of tokens is allowed: %o", (extra_body) => {
  expect(unboundedField(extra_body)).toBeNull();
});
