import { expect, test } from "vitest";
import type { ModelResponse } from "../../../src/contract/trajectory.ts";
import { cutResponse, packTokens } from "../../../src/core/rollout/tokens.ts";
import { unpackTokens } from "./unpacked-tokens.ts";

function response(
  prompt_ids: number[] | null,
  completion_ids: number[] | null,
  completion_logprobs: number[] | null = null,
): ModelResponse {
  return {
    id: null,
    model: null,
    message: { role: "assistant", content: "" },
    finish_reason: "stop",
    usage: null,
    prompt_ids,
    completion_ids,
    completion_logprobs,
    policy_version: null,
    latency_ms: 0,
  };
}

/** Packs the turns one after the other, as a rollout does. */
function pack(responses: ModelResponse[]) {
  let previous: number[] = [];
  return responses.map((one) => {
    const tokens = packTokens(previous, one);
    previous = tokens === null ? [] : [...(one.prompt_ids ?? []), ...(one.completion_ids ?? [])];
    return { tokens };
  });
}

test("a blob is little-endian int32 in base64, logprobs float32", () => {
  expect(packTokens([], response([1, 258], [-1], [-0.5]))).toEqual({
    prompt_suffix_ids: "AQAAAAIBAAA=",
    forked: false,
    completion_ids: "/////w==",
    completion_logprobs: "AAAAvw==",
    prompt_length: 2,
    completion_length: 1,
  });
});

test("a turn that continues the previous one stores only its new ids", () => {
  const turns = pack([response([1, 2], [3]), response([1, 2, 3, 4], [5])]);
  expect(turns[1]?.tokens).toMatchObject({ forked: false, prompt_length: 4 });
  expect(turns[1]?.tokens?.prompt_suffix_ids).toBe(packTokens([], response([4], []))?.prompt_suffix_ids);
});

test("a turn sampled again without new ids continues the previous one", () => {
  const [, again] = pack([response([1, 2], [3]), response([1, 2, 3], [4])]);
  expect(again?.tokens).toMatchObject({ forked: false, prompt_suffix_ids: "", prompt_length: 3 });
});

test("a turn whose ids differ anywhere in the shared part is stored whole", () => {
  const turns = pack([response([1, 2], [3]), response([1, 9, 3, 4], [5]), response([1], [2])]);
  expect(turns.map((turn) => turn.tokens?.forked)).toEqual([false, true, true]);
});

test("unpacking returns every turn's ids, also for forks and turns without ids", () => {
  const responses = [
    response([1, 2], [3, 70_000], [-0.25, -1.5]),
    response([1, 2, 3, 70_000, 4], [], []),
    response(null, null),
    response([7], [8, 9]),
    response([7, 8, 9, 10], [11]),
    response([7, 8], [12]),
  ];
  expect(unpackTokens(pack(responses))).toEqual(
    responses.map((one) =>
      one.prompt_ids === null
        ? null
        : {
            prompt_ids: one.prompt_ids,
            completion_ids: one.completion_ids,
            logprobs: one.completion_logprobs,
          },
    ),
  );
});

test("a turn is stored without ids if the engine sends only half of them", () => {
  expect(packTokens([], response([1], null))).toBeNull();
  expect(packTokens([], response(null, [1]))).toBeNull();
});

test("a response is cut to the stored length, with a mark; a shorter one is unchanged", () => {
  const whole = response([1, 2], [3, 4], [-0.5, -1]);
  expect(cutResponse(whole, 3)).toEqual({
    ...response([1, 2], [3], [-0.5]),
    tokens_cut: true,
  });
  expect(cutResponse(whole, 1)).toMatchObject({ prompt_ids: [1], completion_ids: [] });
  expect(cutResponse(whole, 4)).toEqual(whole);
  expect(cutResponse(whole, null)).toBe(whole);
});

test("a response without ids is not cut", () => {
  const textOnly = response(null, null);
  expect(cutResponse(textOnly, 1)).toEqual(textOnly);
});
