import { expect, test } from "vitest";
import { histogramSamples, prometheusText } from "../../src/telemetry/prometheus.ts";

test("a family has its help, its type and a line for each sample", () => {
  const samples = [{ value: 3 }, { labels: { status: "running", kind: "eval" }, value: 0.5 }];
  expect(prometheusText([{ name: "runs", type: "gauge", help: "How many", samples }])).toBe(
    '# HELP runs How many\n# TYPE runs gauge\nruns 3\nruns{status="running",kind="eval"} 0.5\n',
  );
});

test("a label may be any text, and a help with several lines stays one line", () => {
  const samples = [{ labels: { a: 'say "hi"\\\nbye' }, value: 1 }];
  expect(prometheusText([{ name: "x", type: "counter", help: "one\\\ntwo", samples }])).toBe(
    '# HELP x one\\\\\\ntwo\n# TYPE x counter\nx{a="say \\"hi\\"\\\\\\nbye"} 1\n',
  );
});

test("unknown values are left out", () => {
  expect(prometheusText([{ name: "x", type: "gauge", help: "", samples: [] }])).toBe("");
});

test("each bucket of a histogram counts the values within its bound, and the last one all values", () => {
  const samples = histogramSamples({ endpoint: "e" }, { bounds: [0.5, 2], counts: [1, 2, 4], sum: 9.5 });
  expect(
    prometheusText([{ name: "t", type: "histogram", help: "h", samples }])
      .split("\n")
      .slice(2, -1),
  ).toEqual([
    't_bucket{endpoint="e",le="0.5"} 1',
    't_bucket{endpoint="e",le="2"} 3',
    't_bucket{endpoint="e",le="+Inf"} 7',
    't_sum{endpoint="e"} 9.5',
    't_count{endpoint="e"} 7',
  ]);
});
