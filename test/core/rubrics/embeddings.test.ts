import { expect, test } from "vitest";
import { InvalidModelResponseError } from "../../../src/contract/errors.ts";
import { cosineOf, readEmbeddings } from "../../../src/core/rubrics/embeddings.ts";

const entry = (index: number, embedding: unknown) => ({ object: "embedding", index, embedding });

test("embeddings are sorted by their texts, and only cost input tokens", () => {
  const data = [entry(1, [0, 1]), entry(0, [1, 0])];
  const body = { object: "list", data, model: "m", usage: { prompt_tokens: 9, total_tokens: 9 } };
  expect(readEmbeddings(body, 2)).toEqual({
    vectors: [
      [1, 0],
      [0, 1],
    ],
    usage: { prompt_tokens: 9, completion_tokens: 0, total_tokens: 9 },
  });
  expect(readEmbeddings({ data }, 2).usage).toBeNull();
});

test.each([
  ["a completion", { choices: [] }],
  ["one too few", { data: [entry(0, [1])] }],
  ["one too many", { data: [entry(0, [1]), entry(1, [1]), entry(2, [1])] }],
  ["the same place twice", { data: [entry(0, [1]), entry(0, [1])] }],
  ["bytes in base64", { data: [entry(0, "AACAPw=="), entry(1, "AACAPw==")] }],
  ["nothing", null],
])("%s is not a reply for two texts", (_what, body) => {
  expect(() => readEmbeddings(body, 2)).toThrow(InvalidModelResponseError);
});

test.each([
  [[3, 4], [4, 3], 0.96],
  [[1, 0], [0, 1], 0],
  [[1, 2], [-1, -2], 0],
  [[1e-160, 0], [1e-160, 0], 1],
  [[0.1, 0.2, 0.3], [0.1, 0.2, 0.3], 1],
])("the cosine of %j and %j is %d", (a, b, worth) => {
  expect(cosineOf(a, b)).toBeCloseTo(worth, 12);
  expect(cosineOf(a, b)).toBeLessThanOrEqual(1);
});

test.each([
  [
    [0, 0],
    [1, 0],
  ],
  [[1], [1, 0]],
  [[], []],
])("%j and %j have no cosine", (a, b) => {
  expect(cosineOf(a, b)).toBeNull();
});
