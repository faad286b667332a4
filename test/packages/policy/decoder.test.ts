import { expect, test } from "vitest";
import { Decoder, decoderCapacity, type Row } from "../../../packages/policy/decoder.ts";
import { Arena } from "../../../packages/policy/gemm.ts";
import { KvCache, type KvSlot, kvCapacity } from "../../../packages/policy/kv-cache.ts";
import { baseWeights, POLICY } from "../../../packages/policy/weights.ts";
import { startJax } from "../../../packages/trainer/gradient.ts";
import { forward } from "../../../packages/trainer/model.ts";
import { layOut } from "../../../packages/trainer/row-batch.ts";
import { seededRandom } from "../../../src/contract/random.ts";

const ROWS = 128;
const SLOTS = 16;
const weights = baseWeights();
const random = seededRandom("decoder");

const arena = new Arena(decoderCapacity(ROWS) + kvCapacity(POLICY, SLOTS));
const decoder = new Decoder(arena, ROWS);
const cache = new KvCache(POLICY, arena, SLOTS);
decoder.load(weights);

function someTokens(length: number): number[] {
  return Array.from({ length }, () => Math.floor(random() * POLICY.vocabulary));
}

/** A slot that holds nothing: the salt is used once. */
function emptySlot(): KvSlot {
  return cache.acquire([0], `${random()}`);
}

function rowsOf(slot: KvSlot, tokens: readonly number[]): Row[] {
  return tokens.map((token, index) => ({ slot, token, sampled: index === tokens.length - 1 }));
}

/** The last token's logits, all tokens in one step. */
function atOnce(tokens: readonly number[]): Float32Array {
  return decoder.step(rowsOf(emptySlot(), tokens)).slice();
}

test("it computes what the training pass computes, written apart from it", async () => {
  await startJax();
  const ids = someTokens(POLICY.context);
  const follows = [...ids, 0];
  const sample = { ids: follows, mask: follows, logprobs: follows, advantage: 1 };
  const [batch] = layOut([sample], 1);
  if (batch === undefined) throw new Error("a sample makes a batch");
  const expected = forward(weights, batch).dataSync();
  const slot = emptySlot();
  const logits = decoder.step(ids.map((token) => ({ slot, token, sampled: true })));
  expect(logits).toHaveLength(ids.length * POLICY.vocabulary);
  const worst = logits.reduce((most, logit, at) => Math.max(most, Math.abs(logit - (expected[at] ?? 0))), 0);
  expect(worst).toBeLessThan(1e-4);
});

test("a prompt has the same bits in one step, in chunks, and token by token", () => {
  const tokens = someTokens(50);
  const expected = atOnce(tokens);
  for (const chunk of [1, 7, 32]) {
    const slot = emptySlot();
    let logits = new Float32Array();
    for (let at = 0; at < tokens.length; at += chunk) {
      logits = decoder.step(rowsOf(slot, tokens.slice(at, at + chunk))).slice();
    }
    expect(logits).toEqual(expected);
  }
});

test("a sequence has the same bits alone and among others at any place", () => {
  const prompts = [5, 1, 30, 12, 22].map(someTokens);
  const alone = prompts.map(atOnce);
  const slots = prompts.map(emptySlot);
  const rows = prompts.flatMap((prompt, index) => rowsOf(slots[index] ?? emptySlot(), prompt));
  expect(decoder.step(rows)).toEqual(Float32Array.from(alone.flatMap((logits) => [...logits])));
});

test("a row that is not sampled makes no logits", () => {
  const slot = emptySlot();
  expect(decoder.step([{ slot, token: 7, sampled: false }])).toHaveLength(0);
  expect(slot.tokens).toEqual([7]);
});
