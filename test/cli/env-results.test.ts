import { expect, test } from "vitest";
import { resultsText } from "../../src/cli/commands/env-results.ts";
import type { EnvironmentResults, ModelResults } from "../../src/contract/environment-results.ts";

const REWARD = {
  ...{ mean: 0.5, se: 0.1, ci95: [0.3, 0.7] as [number, number], wilson95: null },
  ...{ n_tasks: 8, n_rollouts: 16, n_unscored: 0, n_error: 0, n_truncated: 0 },
};
const ROLLOUTS = { planned: 20, scored: 16, failed: 2, unscored: 1, cancelled: 0 };

function row(model: string, changes: Partial<ModelResults> = {}): ModelResults {
  return {
    ...{ version: "1.0.0", digest: "sha256:1", model, weights_of: null, environment_args: {}, judges: {} },
    ...{ dataset: null, inline: false, evals: 2, unfinished: 1, rollouts: ROLLOUTS },
    measured: { id: "run_1", created_at: 1, reward: REWARD, rollouts: ROLLOUTS },
    latest: [{ id: `run_${model}`, name: null, status: "completed", mean: 0.5, created_at: 1 }],
    ...changes,
  };
}

function results(rows: readonly ModelResults[], changes: Partial<EnvironmentResults> = {}): EnvironmentResults {
  const left_out = { training: 0, forked: 0, rescored: 0 };
  return {
    ...{ object: "environment_results", id: "alice/words", runs: 4, has_more: false, left_out },
    ...{ rows: [...rows], ...changes },
  };
}

const wide = (found: EnvironmentResults) => resultsText(found, Number.POSITIVE_INFINITY);

test("each table has its version and settings, and each row everything that was not scored", () => {
  const judges = { default: { model: "big", sampling: {} } };
  const found = results([
    row("first", { measured: { ...row("").measured, reward: { ...REWARD, wilson95: [0.4, 0.6] } } as never }),
    row("second", { weights_of: "run_9", measured: null }),
    row("third", { version: "2.0.0", environment_args: { max: 9 }, judges, dataset: "ds_1", inline: true }),
  ]);
  const lines = wide(found).split("\n");
  expect(lines[0]).toBe("Results of this project on alice/words, from all 4 runs");
  expect(lines.filter((line) => line.startsWith("version "))).toEqual([
    "version 1.0.0",
    'version 2.0.0, {"max":9}, judge default: big, dataset ds_1',
  ]);
  expect(lines.filter((line) => line.includes("may have different tasks"))).toHaveLength(1);
  const cells = lines.map((line) => line.split(/ {3,}/));
  expect(cells.find(([, model]) => model === "first")).toEqual([
    ...["1", "first", "0.500", "0.400 to 0.600", "8", "16", "2", "1", "0", "1", "2"],
  ]);
  expect(cells.find(([, model]) => model?.startsWith("second"))).toEqual([
    ...["–", "second, trained by run_9", "no score", "–", "–", "16", "2", "1", "0", "1", "2"],
  ]);
});

test("runs that are in no table are counted, and so is that there are older ones", () => {
  const left_out = { training: 2, forked: 0, rescored: 1 };
  expect(wide(results([], { left_out, runs: 200, has_more: true }))).toBe(
    "Results of this project on alice/words, from the newest 200 runs; in no table: training 2, rescored 1\n\nNo evals.",
  );
});

test("control characters of names and arguments are printed as codes, and a narrow terminal gets lists", () => {
  const found = results([row("m\u001b[31m", { environment_args: { text: "a\u202eb" } })]);
  const text = resultsText(found, 60);
  expect(text).toContain('version 1.0.0, {"text":"a\\u{202e}b"}');
  expect(text).toContain("model      m\\u{1b}[31m\n");
  expect(text).toContain("not ended  1\n");
});
