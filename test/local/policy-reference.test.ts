/** The bundled policy server as a training's reference: the call that the platform makes, and its reader. */
import { POLICY_MODEL } from "@rollcall/policy/known-environments";
import { startPolicyServer } from "@rollcall/policy/policy-server";
import { expect, test } from "vitest";
import { callModel, callPromptLogprobs } from "../../src/kernel/clients/inference.ts";

test("the policy as its own reference gives the logprobs that it sampled with", async () => {
  const policy = await startPolicyServer();
  try {
    const where = { base_url: policy.url, api_key: null, signal: new AbortController().signal };
    const sampled = await callModel({
      ...{ ...where, idempotency_key: "k1", model: POLICY_MODEL, tools: [] },
      messages: [{ role: "user", content: "1 + 2" }],
      sampling: { max_tokens: 24, temperature: 1, logprobs: true, extra_body: { return_token_ids: true } },
    });
    if (sampled.kind !== "answered") throw new Error(JSON.stringify(sampled));
    const { prompt_ids, completion_ids, completion_logprobs } = sampled.response;
    const token_ids = Int32Array.from([...(prompt_ids ?? []), ...(completion_ids ?? [])]);
    const call = { ...where, idempotency_key: "k2", model: POLICY_MODEL, token_ids };
    const scored = await callPromptLogprobs(call);
    if (scored.kind !== "answered") throw new Error(JSON.stringify(scored));
    const { logprobs, usage } = scored.response;
    expect([logprobs.length, logprobs[0]]).toEqual([token_ids.length, 0]);
    const own = logprobs.slice(prompt_ids?.length);
    expect(own).toEqual(completion_logprobs?.map((logprob) => expect.closeTo(logprob, 4)));
    expect(usage).toMatchObject({ prompt_tokens: token_ids.length, completion_tokens: 1 });
    const unknown = await callPromptLogprobs({ ...call, token_ids: Int32Array.of(1, 99_999) });
    expect(unknown).toMatchObject({ kind: "failed", retryable: false, status: 400 });
  } finally {
    await policy.stop();
  }
});
