/** The differentiable model, checked against the decoder that samples, which is separate code. */
import { Decoder, decoderCapacity } from "@rollcall/policy/decoder";
import { Arena } from "@rollcall/policy/gemm";
import { KvCache, kvCapacity } from "@rollcall/policy/kv-cache";
import { baseWeights, POLICY } from "@rollcall/policy/weights";
import { seededRandom } from "rollcall/helpers";
import { expect, test } from "vitest";
import { startJax } from "../gradient.ts";
import { forward } from "../model.ts";
import { layOut } from "../row-batch.ts";

test("the training pass computes the same as the decoder", async () => {
  await startJax();
  const weights = baseWeights();
  const random = seededRandom("decoder");
  const ids = Array.from({ length: POLICY.context }, () => Math.floor(random() * POLICY.vocabulary));
  const follows = [...ids, 0];
  const sample = { ids: follows, mask: follows, logprobs: follows, advantage: 1 };
  const [batch] = layOut([sample], 1);
  if (batch === undefined) throw new Error("a sample makes a batch");
  const expected = forward(weights, batch).dataSync();
  const arena = new Arena(decoderCapacity(POLICY.context) + kvCapacity(POLICY, 1));
  const decoder = new Decoder(arena, POLICY.context);
  const cache = new KvCache(POLICY, arena, 1);
  decoder.load(weights);
  const slot = cache.acquire([0], null);
  const logits = decoder.step(ids.map((token) => ({ slot, token, sampled: true })));
  expect(logits).toHaveLength(ids.length * POLICY.vocabulary);
  const worst = logits.reduce((most, logit, at) => Math.max(most, Math.abs(logit - (expected[at] ?? 0))), 0);
  expect(worst).toBeLessThan(1e-4);
});
