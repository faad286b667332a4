/** Which invalid JSON is accepted in an acknowledgement, and which is not. */
import { expect, test } from "vitest";
import { readMetrics } from "../../../src/core/training/read-metrics.ts";

test("bare NaN and infinities of Python in metrics become null and are listed; everything else is parsed as JSON", () => {
  const text = `{"token": "t", "metrics": {"loss": NaN, "kl": -Infinity, "n": 3, "gone": null,
    "big": 1e999, "a \\"NaN\\": {b": Infinity}, "epoch": 1}`;
  expect(readMetrics(text)).toEqual({
    body: {
      ...{ token: "t", epoch: 1 },
      metrics: { loss: null, kl: null, n: 3, gone: null, big: null, 'a "NaN": {b': null },
    },
    not_finite: ["loss", "kl", "big", 'a "NaN": {b'],
  });
});

test.each([
  ["outside of the metrics", '{"epoch": NaN, "metrics": {}}'],
  ["in another object", '{"progress": {"metrics": NaN}, "metrics": {"loss": 1}}'],
  ["after the metrics", '{"metrics": {"loss": NaN}, "epoch": NaN}'],
  ["deeper in the metrics", '{"metrics": {"loss": {"mean": NaN}}}'],
  ["in a list", '{"metrics": [NaN]}'],
  ["in a list among them", '{"metrics": {"loss": [NaN]}}'],
  ["as a name", '{"metrics": {NaN: 1}}'],
  ["glued to something", '{"metrics": {"loss": NaNs}}'],
  ["in another spelling", '{"metrics": {"loss": nan}}'],
  ["in an object in a list", '[{"metrics": {"loss": NaN}}]'],
  ["in a text that never ends", '{"metrics": {"loss": NaN, "x": "'],
])("a bare NaN %s is not JSON", (_, text) => {
  expect(() => readMetrics(text)).toThrow(SyntaxError);
});

test("valid JSON is unchanged, whatever its texts look like", () => {
  const body = { metrics: { loss: 1 }, note: '"metrics": {"loss": NaN}' };
  expect(readMetrics(JSON.stringify(body))).toEqual({ body, not_finite: [] });
  expect(readMetrics("3")).toEqual({ body: 3, not_finite: [] });
});

test("a body of a megabyte is parsed in one pass", () => {
  const names = Array.from({ length: 40_000 }, (_, at) => `"metric ${at}": NaN`);
  const read = readMetrics(`{"metrics": {${names.join(",")}}, "text": "${'\\"'.repeat(100_000)}"}`);
  expect(read.not_finite).toHaveLength(40_000);
});
