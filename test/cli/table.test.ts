import { expect, test } from "vitest";
import type { Reason } from "../../src/cli/eval/reasons.ts";
import { comparisonText } from "../../src/cli/eval/summary.ts";
import { signedText, timeText } from "../../src/cli/terminal/format.ts";
import { resultsTable } from "../../src/cli/terminal/results.ts";
import type { RunComparison } from "../../src/contract/comparison.ts";
import type { RunView } from "../../src/contract/run.ts";
import { COMPARISON } from "../kernel/http/examples.ts";
import { aRun } from "./a-run.ts";

const tableOf = (run: RunView, reasons: readonly Reason[] = []) =>
  resultsTable([{ run, reasons }], Number.POSITIVE_INFINITY);
const notesOf = (run: Parameters<typeof aRun>) =>
  tableOf(aRun(...run))
    .split("\n")
    .filter((line) => line.includes("not scored") || line.includes("failed:"));

test("unscored rollouts are counted by cause, with the command that shows more", () => {
  const [note] = notesOf([{ scored: 7, failed: { provider: 2 }, cancelled: { user: 1 } }]);
  expect(note).toBe(
    "  calculator: not scored: provider 2, user 1; why: npx rollcall run results run_01aaaaaaaaaaaaaaaaaaaaaaaa --outcome failed",
  );
  expect(notesOf([{ unscored: { scorer: 1 } }])[0]).toMatch(/--outcome unscored$/);
  expect(notesOf([{ cancelled: { user: 1 } }])[0]).toMatch(/: user 1$/);
});

test("each class of failure has its most frequent message on a line, and the number of rollouts with others", () => {
  const run = aRun({ scored: 7, failed: { provider: 4, timeout: 1 } });
  const reasons = [
    { outcome: "failed", cause: "provider", n: 4, message: "404 from http://h: no model \x1b[31mx", others: 1 },
    { outcome: "failed", cause: "timeout", n: 1, message: null, others: 0 },
  ] as const;
  expect(tableOf(run, reasons).split("\n").slice(-1)).toEqual([
    "    provider: 404 from http://h: no model \\u{1b}[31mx (and 1 with other messages)",
  ]);
});

test("a declared best reward is the first note", () => {
  const [, , , note] = tableOf({ ...aRun({ scored: 10 }), max_reward: 1.1 }).split("\n");
  expect(note).toMatch(/^ {2}calculator: best possible 1\.1; reward 95 % /);
});

test("the details of the mean are its intervals, pass@k, and how many rollouts were truncated", () => {
  const run = aRun({ scored: 10 });
  const reward = {
    ...run.report.reward,
    wilson95: [0.25, 0.75] as [number, number],
    n_truncated: 3,
  };
  const report = {
    ...run.report,
    ...{ reward, pass_at_k: { "1": 0.5, "2": null }, pass_hat_k: { "1": 0.25, "2": null } },
  };
  const noteOf = (pass_k?: RunView["report"]["pass_k"]) =>
    tableOf({ ...run, report: { ...report, pass_k } }).split("\n")[3];
  const before = "  calculator: reward 95 % 0.300 to 0.700; Wilson 0.250 to 0.750;";
  expect(noteOf()).toBe(`${before} pass@1 0.500, pass@2 –; pass^1 0.250, pass^2 –; cut off 3`);
  const tasks = (n_tasks: number) => ({ n_tasks, n_too_few: 1200 - n_tasks, at_se: null, hat_se: null });
  const [at, hat] = [
    "pass@1 0.500 (1,200 tasks), pass@2 – (0 tasks)",
    "pass^1 0.250 (1,200 tasks), pass^2 – (0 tasks)",
  ];
  expect(noteOf({ "1": tasks(1200), "2": tasks(0) })).toBe(`${before} ${at}; ${hat}; cut off 3`);
});

test("a comparison reports what difference its tasks can detect, and how many more would detect the observed one", () => {
  const line = (detectable: RunComparison["detectable"]) =>
    comparisonText({ ...COMPARISON, detectable }, Number.POSITIVE_INFINITY).match(/detectable +(.*)/)?.[1];
  const basis = { alpha: 0.05, power: 0.8, effect: 0.295316 };
  const { mean } = COMPARISON.difference;
  expect(line({ ...basis, more_tasks: 1300 })).toBe(
    `from ±0.295 (alpha 0.05, power 0.8); 1,300 more tasks would detect ${signedText(mean)}`,
  );
  for (const more_tasks of [0, null]) {
    expect(line({ ...basis, more_tasks })).toBe("from ±0.295 (alpha 0.05, power 0.8)");
  }
  expect(line({ ...basis, effect: null, more_tasks: null })).toBeUndefined();
  expect(line(undefined)).toBeUndefined();
});

test("an interval beyond the observed rewards says so; one within them, and an older report, do not", () => {
  const noteOf = (range?: [number, number]) => {
    const run = aRun({ scored: 10 });
    const reward = {
      ...run.report.reward,
      ci95: [0.97, 1.01] as [number, number],
      ...(range && { range }),
    };
    const report = { ...run.report, reward };
    return tableOf({ ...run, report }).split("\n")[3];
  };
  const beyond = "  calculator: reward 95 % 0.970 to 1.010, outside the observed rewards, 0.000 to 1.000";
  expect(noteOf([0, 1])).toBe(beyond);
  expect(noteOf([0.98, 2])).toContain("to 1.010, outside the observed rewards, 0.980 to 2.000");
  expect(noteOf([0, 2])).toBe("  calculator: reward 95 % 0.970 to 1.010");
  expect(noteOf()).toBe("  calculator: reward 95 % 0.970 to 1.010");
});

test("an endpoint's message reaches the terminal as text", () => {
  const error = { code: "endpoint_unauthorized", message: "401 bad \x1b[31mkey\n" } as const;
  const notes = notesOf([{ failed: { provider: 10 } }, { status: "failed", error }]);
  expect(notes[1]).toBe("  calculator: failed: 401 bad \\u{1b}[31mkey⏎");
});

test("the judges' cost is separate from the policy's tokens, if any judge was called", () => {
  const run = aRun({ scored: 1 });
  const judge = { prompt_tokens: 1000, completion_tokens: 234, total_tokens: 1234, calls: 3, cost_micros: null };
  const report = { ...run.report, usage: { ...run.report.usage, judge } };
  expect(tableOf({ ...run, report })).toContain("  calculator: judges: 3 calls, 1,234 tokens");
  expect(tableOf(run)).not.toContain("judges");
});

test("a run's costs are printed if they are known and not zero, and as $0.00 if all are zero", () => {
  const cost = { policy_micros: null, judge_micros: 0, charged_micros: 1520 };
  const noted = (known: Partial<Record<keyof typeof cost, number>>) =>
    tableOf({ ...aRun({ scored: 1 }), cost: { ...cost, ...known } });
  expect(noted({})).toContain("  calculator: cost: $0.00152 charged by the platform");
  expect(noted({ policy_micros: 2_500_000 })).toContain("cost: $2.50 the model, $0.00152 charged by the platform");
  expect(noted({ charged_micros: 0 })).not.toContain("cost:");
  expect(noted({ policy_micros: 0, charged_micros: 0 })).toContain("  calculator: cost: $0.00");
});

test("the environments of a group are listed below it, each with its own figures and metrics", () => {
  const run = aRun({ scored: 6, failed: { provider: 2 } });
  const { reward } = run.report;
  const of = (mean: number, n_error: number) => ({
    reward: { ...reward, mean, se: 0.125, n_tasks: 2, n_rollouts: 3, n_unscored: 0, n_error },
    metrics: { right: { mean, se: null, n: 3 } },
  });
  const members = { math: of(0.25, 0), "tools/sql": of(0.75, 2) };
  const report = { ...run.report, metrics: { right: { mean: 0.5, se: null, n: 6 } }, members };
  const lines = tableOf({ ...run, report }).split("\n");
  expect(lines[3]).toMatch(/^- math +0\.250 ± 0\.125 +2 +3 +scored 3$/);
  expect(lines[4]).toMatch(/^- tools\/sql +0\.750 ± 0\.125 +2 +5 +scored 3, failed 2$/);
  const notes = lines.filter((line) => line.includes("right"));
  expect(notes).toEqual([
    expect.stringMatching(/^ {2}calculator: math: right 0\.250/),
    expect.stringMatching(/^ {2}calculator: tools\/sql: right 0\.750/),
  ]);
});

test("a time beyond JavaScript's dates is printed as its seconds", () => {
  expect(timeText(1_795_269_727)).toBe("2026-11-21 14:02:07Z");
  expect(timeText(1e15)).toBe("1000000000000000 s");
});
