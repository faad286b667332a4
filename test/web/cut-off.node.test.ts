import { expect, test } from "vitest";
import { rolloutCutText, turnCutText } from "../../src/web/components/cut-off.ts";

test("a truncated rollout says what was truncated: itself, by its stop, or else an answer in it", () => {
  expect(["prompt_too_long", "max_size_reached"].map(rolloutCutText)).toEqual([
    "cut off: its prompt exceeded the model's context",
    "cut off: it exceeded the maximum size of a rollout of this deployment",
  ]);
  for (const stop of ["no_tools_called", "max_turns_reached", "has_error", null]) {
    expect(rolloutCutText(stop)).toBe("an answer was cut off at a token limit");
  }
});

test("a truncated turn says whether the endpoint ended its answer, or it was only cut for storage", () => {
  expect(turnCutText("length")).toBe("answer cut off at its token limit");
  expect(turnCutText("stop")).toBe("more tokens than the environment allows");
});
