/** Our scores against the recorded scores of the reference code; `npm run test:benchmarks` records them again. */
import { expect, test } from "vitest";
import { digestOf, findDifferences, readRecorded } from "./benchmark.ts";
import { BENCHMARKS } from "./benchmarks.ts";

test.each(BENCHMARKS)("$name is scored as its reference does, but for the named deviations", async (benchmark) => {
  const recorded = readRecorded(benchmark.name);
  expect(benchmark.answers.length).toBeGreaterThanOrEqual(200);
  expect(digestOf(benchmark.answers), "other answers are generated: run npm run test:benchmarks").toBe(recorded.sha256);
  expect(await findDifferences(benchmark, recorded)).toEqual([]);
});

test.each(BENCHMARKS)("the answers of $name are right and wrong, each often enough", ({ name }) => {
  for (const scores of Object.values(readRecorded(name).scores)) {
    const right = scores.replaceAll("0", "").length;
    expect(right).toBeGreaterThan(scores.length / 10);
    expect(right).toBeLessThan((scores.length * 9) / 10);
  }
});
