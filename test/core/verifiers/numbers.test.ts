import { expect, test } from "vitest";
import { environmentLabel } from "../../../src/contract/output-rows.ts";
import { averageMetrics, averageReward, contextTokens, passTables } from "../../../src/core/verifiers/metadata.ts";

const rewards = (id: number, ...given: (number | null)[]) => given.map((reward) => ({ example_id: id, reward }));
const TWICE = { attempts: 2, threshold: 0.5 };

test("D2: a reward of null is left out of the mean, a row without one counts 0, and no reward at all has no mean", () => {
  expect(averageReward([{ reward: 1 }, { reward: null }, {}])).toBe(0.5);
  expect(averageReward([{ reward: null }])).toBeNull();
  expect(averageReward([])).toBeNull();
});

test("a metric's mean is over the rows that have it as a number or a boolean", () => {
  const rows = [{ metrics: { a: 1, b: null, c: "1" } }, { metrics: { a: false, b: 3 } }, { metrics: null }, {}];
  expect(averageMetrics(rows)).toEqual({ a: 0.5, b: 3 });
});

test("pass@k is over complete examples: all their first attempts are present and scored", () => {
  const complete = rewards(0, 1, 0);
  const half = { "1": 0.5, "2": 1 };
  expect(passTables(complete, TWICE)).toEqual({
    pass_at_k: half,
    pass_all_k: { "1": 0.5, "2": 0 },
  });
  const others = [...rewards(1, 1), ...rewards(2, 1, null), ...rewards(3, null, 1, 1)];
  expect(passTables([...others, ...complete], TWICE)).toEqual(passTables(complete, TWICE));
  expect(passTables(others, TWICE)).toEqual({ pass_at_k: {}, pass_all_k: {} });
  expect(passTables([...complete, ...rewards(0, 1, 1)], TWICE)).toEqual(passTables(complete, TWICE));
});

test("an attempt passes from the threshold on", () => {
  const rows = rewards(0, 0.7, 0.6999);
  expect(passTables(rows, { attempts: 2, threshold: 0.7 }).pass_at_k["1"]).toBe(0.5);
});

test("pass@k is given only for powers of two, and not for a single attempt", () => {
  const rows = rewards(0, 1, 1, 1, 1, 1, 1);
  const { pass_all_k } = passTables(rows, { attempts: 6, threshold: 0.5 });
  expect(Object.keys(pass_all_k)).toEqual(["1", "2", "4"]);
  expect(passTables(rows, { attempts: 1, threshold: 0.5 }).pass_at_k).toEqual({});
});

test("a row's environment is its route, or its column, or the default", () => {
  expect(environmentLabel({ info: { env_id: ["outer", "math"] } })).toBe("outer/math");
  expect(environmentLabel({ info: '{"env_id": "math"}', env_id: "other" })).toBe("math");
  expect(environmentLabel({ info: "", env_id: "other" })).toBe("other");
  expect(environmentLabel({ info: "[1]", env_id: "other" })).toBe("other");
  expect(environmentLabel({ info: { env_id: [] }, env_id: "other" })).toBe("");
  expect(environmentLabel({ info: { env_id: 0 } })).toBe("0");
  expect(environmentLabel({ info: { env_id: null }, env_id: "other" })).toBe("other");
  expect(environmentLabel({ info: null })).toBe("default");
});

test("a row's environment has verifiers' name: null is None, and an info text that is not JSON is an error", () => {
  expect(environmentLabel({ env_id: null })).toBe("None");
  expect(environmentLabel({ info: { env_id: null }, env_id: null })).toBe("None");
  expect(environmentLabel({ info: { env_id: ["a", null, true, 5] } })).toBe("a/None/True/5");
  expect(environmentLabel({ info: { env_id: false } })).toBe("False");
  expect(() => environmentLabel({ info: "no JSON", env_id: "other" })).toThrow(SyntaxError);
});

test("the context is the sampled tokens and the rest of the last call's, over calls with usage", () => {
  const call = (prompt_tokens: number, completion_tokens: number) => {
    return { prompt_tokens, completion_tokens };
  };
  const counted = [null, call(10, 2), call(20, 3), null];
  expect(contextTokens(counted)).toEqual({ final_output_tokens: 5, final_input_tokens: 18 });
  expect(contextTokens([null])).toEqual({ final_output_tokens: 0, final_input_tokens: 0 });
  expect(contextTokens([call(1, 9), call(1, 1)]).final_input_tokens).toBe(0);
});
