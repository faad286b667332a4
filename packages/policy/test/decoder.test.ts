import { seededRandom } from "rollcall/helpers";
import { expect, test } from "vitest";
import { Decoder, decoderCapacity, type Row } from "../decoder.ts";
import { Arena } from "../gemm.ts";
import { KvCache, type KvSlot, kvCapacity } from "../kv-cache.ts";
import { baseWeights, POLICY } from "../weights.ts";

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

/** An empty slot: each salt is used once. */
function emptySlot(): KvSlot {
  return cache.acquire([0], `${random()}`);
}

function rowsOf(slot: KvSlot, tokens: readonly number[]): Row[] {
  return tokens.map((token, index) => ({ slot, token, sampled: index === tokens.length - 1 }));
}

/** The logits of the last token, with all tokens in one step. */
function atOnce(tokens: readonly number[]): Float32Array {
  return decoder.step(rowsOf(emptySlot(), tokens)).slice();
}

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
