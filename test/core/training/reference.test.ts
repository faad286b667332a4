import { expect, test } from "vitest";
import { readPromptLogprobs, referenceAsk, withReference } from "../../../src/core/training/reference.ts";
import { sampleFault } from "../../../src/core/training/sample-row.ts";
import { promptLogprobOf, promptLogprobsBody } from "../../fakes/prompt-logprobs.ts";
import { GOLDEN_ROW } from "./formats/golden-row.ts";

const IDS = [10, 11, 12];
const body = (prompt_logprobs: unknown) => ({ choices: [{ prompt_logprobs }] });
const entry = (id: number, logprob: unknown) => ({ [id]: { logprob, rank: 1, decoded_token: "x" } });

test("the logprob of each token itself is read, also beside a likelier one, and the first has none", () => {
  const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 };
  for (const prompt_logprobs of [0, 1]) {
    const reply = promptLogprobsBody({ model: "m", prompt: IDS, prompt_logprobs }, 1);
    const logprobs = [0, promptLogprobOf(11), promptLogprobOf(12)];
    expect(readPromptLogprobs(reply, IDS, usage)).toEqual({ logprobs, usage });
  }
});

test.each([
  ["no prompt_logprobs", {}, "no prompt_logprobs"],
  ["null in their place", body(null), "no prompt_logprobs"],
  ["too few", body([null, entry(11, -1)]), "2 prompt_logprobs for 3 tokens"],
  ["another token", body([null, entry(9, -1), entry(12, -1)]), "prompt_logprobs[1] has no logprob of the token 11"],
  ["a text", body([null, entry(11, "-1"), entry(12, -1)]), "no logprob of the token 11"],
  ["vLLM's value for a missing one", body([null, entry(11, -9999), entry(12, -1)]), "missing_logprob"],
  ["a positive one", body([null, entry(11, 0.5), entry(12, -1)]), "positive_logprob"],
  ["not a reply", "x", "no prompt_logprobs"],
])("a reply with %s is an error of the reference", (_, reply, message) => {
  expect(() => readPromptLogprobs(reply, IDS, null)).toThrow(message);
});

test("equal rows are one question, and rows of other ids are not", () => {
  const hash = (bytes: Uint8Array) => [...bytes].join(".");
  const key = (...ids: number[]) => referenceAsk({ rollout_id: "ro_1", token_ids: Int32Array.from(ids) }, hash).key;
  expect(key(1, 2)).toBe(key(1, 2));
  expect(new Set([key(1, 2), key(2, 1), key(1, 2, 0), key(258)]).size).toBe(4);
});

test("a row with a reference is valid, and its weights are on the trained tokens only", () => {
  const logprobs = Float32Array.from(GOLDEN_ROW.token_ids, (_, at) => -at / 8);
  const row = withReference(GOLDEN_ROW, logprobs, 0.5);
  expect(sampleFault(row)).toBeNull();
  expect([...(row.ref_kl_weights ?? [])]).toEqual([0, 0, 0, 0.5, 0.5, 0, 0.5]);
  expect(withReference(GOLDEN_ROW, logprobs, 0).ref_kl_weights).toBeUndefined();
});
