import { expect, test } from "vitest";
import { SampleFilter } from "../../../src/contract/training-request.ts";
import { applyFilters } from "../../../src/core/training/sample-filters.ts";

const of = (filter: object) => SampleFilter.parse(filter);

/** The first token is context; a null is a token of context in between. */
function row(logprobs: readonly (number | null)[], ids: readonly number[] = []) {
  return {
    token_ids: Int32Array.from([0, ...logprobs.map((_, at) => ids[at] ?? 7)]),
    mask: Uint8Array.from([0, ...logprobs.map((logprob) => (logprob === null ? 0 : 1))]),
    logprobs: Float32Array.from([0, ...logprobs.map((logprob) => logprob ?? 0)]),
  };
}

// ln(1000) is 6.91: unlikely is a logprob below -8.91.
const GIBBERISH = of({ kind: "gibberish", vocab_size: 1000, token_id_threshold: 500, enforce: true });
const REPETITION = of({ kind: "repetition", window: 3, enforce: true });

test("the defaults are prime-rl's: rare above 100,000, e^-2 below chance, 3,000 tokens above 0.99, only counted", () => {
  expect(of({ kind: "gibberish", vocab_size: 1000 })).toMatchObject({
    ...{ token_id_threshold: 100_000, logprob_offset: 2, enforce: false },
  });
  expect(of({ kind: "repetition" })).toMatchObject({ window: 3000, prob_threshold: 0.99, enforce: false });
});

test.each([
  ["a rare and unlikely token", row([-1, -8.95], [7, 501]), ["gibberish"]],
  ["a rare token that was likely", row([-8.9], [501]), []],
  ["an unlikely token that is not rare", row([-20], [500]), []],
  ["a rare token of the context", row([null, -1], [501, 7]), []],
])("gibberish finds %s only if it is both, and sampled", (_, one, flagged) => {
  expect(applyFilters([GIBBERISH], [one]).flagged).toEqual(flagged);
});

test.each([
  ["three nearly certain tokens in a row", row([-1, -0.001, -0.001, -0.001]), ["repetition"]],
  ["three with context in between", row([-0.001, -0.001, null, -0.001]), ["repetition"]],
  ["three with another one in between", row([-0.001, -0.001, -1, -0.001, -0.001]), []],
  ["tokens at the threshold itself", row(Array(5).fill(Math.fround(Math.log(0.99)) - 1e-6)), []],
])("repetition looks for a window of nearly certain tokens: %s", (_, one, flagged) => {
  expect(applyFilters([REPETITION], [one]).flagged).toEqual(flagged);
});

test("rows of a rollout do not continue each other", () => {
  const two = row([-0.001, -0.001]);
  expect(applyFilters([REPETITION], [two, two]).flagged).toEqual([]);
});

test("every filter counts, and the first that is enforced leaves the rollout out", () => {
  const both = row([-20, -0.001, -0.001, -0.001], [501]);
  const counting = { ...GIBBERISH, enforce: false };
  expect(applyFilters([GIBBERISH, REPETITION], [both])).toEqual({
    flagged: ["gibberish", "repetition"],
    left_out_by: "gibberish",
  });
  expect(applyFilters([counting, REPETITION], [both])).toEqual({
    flagged: ["gibberish", "repetition"],
    left_out_by: "repetition",
  });
  expect(applyFilters([counting], [both])).toEqual({ flagged: ["gibberish"], left_out_by: null });
  expect(applyFilters([], [both])).toEqual({ flagged: [], left_out_by: null });
});
