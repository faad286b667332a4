import { expect, test } from "vitest";
import { mergeSampling, Sampling } from "../../src/core/sampling.ts";

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
