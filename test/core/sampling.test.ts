import { expect, test } from "vitest";
import { mergeSampling, Sampling, trainingSampling } from "../../src/core/sampling.ts";

test("R-gen-12, D9: the run's sampling arguments go over the environment's, objects member by member", () => {
  const environment = { temperature: 1, extra_body: { x: 1, deep: { a: 1, b: [1, 2] } } };
  const run = { temperature: 0.5, extra_body: { y: 2, deep: { b: [3] } } };
  expect(mergeSampling(environment, run)).toEqual({
    temperature: 0.5,
    extra_body: { x: 1, y: 2, deep: { a: 1, b: [3] } },
  });
  expect(environment.extra_body).toEqual({ x: 1, deep: { a: 1, b: [1, 2] } });
});

test("a null of the run takes back what the environment asks for", () => {
  const run = Sampling.parse({ temperature: null, extra_body: { x: null } });
  const merged = mergeSampling({ temperature: 1, top_p: 0.9, extra_body: { x: { deep: 1 } } }, run);
  expect(merged).toEqual({ temperature: null, top_p: 0.9, extra_body: { x: null } });
});

test("a training run asks for ids and logprobs, and leaves the distribution as the weights give it", () => {
  expect(trainingSampling({}, { max_tokens: 64 }, 7)).toEqual({
    ...{ temperature: 1, top_p: 1, top_k: -1, min_p: 0, logprobs: true, max_tokens: 64 },
    extra_body: { return_token_ids: true, cache_salt: "7" },
  });
});

test("what environment and run ask of a training run goes over that, and a null takes it back", () => {
  const run = Sampling.parse({ temperature: 0.7, min_p: null, extra_body: { cache_salt: null } });
  expect(trainingSampling({ temperature: 0.5, top_p: 0.9 }, run, 0)).toEqual({
    ...{ temperature: 0.7, top_p: 0.9, top_k: -1, min_p: null, logprobs: true },
    extra_body: { return_token_ids: true },
  });
});
