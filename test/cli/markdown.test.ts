import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { GateResult } from "../../src/cli/eval/gates.ts";
import { evalMarkdown, writeMarkdown } from "../../src/cli/eval/markdown.ts";
import { NO_ROLLOUT, type TaskCase } from "../../src/cli/eval/task-cases.ts";
import { inlineCode } from "../../src/cli/terminal/markdown.ts";
import type { RunComparison } from "../../src/contract/comparison.ts";
import { COMPARISON } from "../kernel/http/examples.ts";
import { aRun } from "./a-run.ts";

const COMPLETED = aRun({ scored: 8, failed: { provider: 2 } }, { status: "completed" });
const NOTHING = { gates: [], comparison: null };
const BAD: TaskCase = {
  ...{ name: "example 3", kind: "failure", seconds: 1, message: "reward 0.000 is under 0.5" },
  ...{ rollout: "ro_1", reply: "I do not know" },
};

function markdown(more: Partial<Parameters<typeof evalMarkdown>[0]> = {}): string {
  return evalMarkdown({ run: COMPLETED, cases: [], judgement: NOTHING, exit: 0, ...more });
}

test("the result, the gates and the tasks that did not pass are tables", () => {
  const gates: GateResult[] = [{ gate: "fail_under", verdict: "failed", message: "mean reward 0.500 is under 0.8" }];
  const passed: TaskCase = { ...BAD, kind: "passed", message: "", ...NO_ROLLOUT };
  const text = markdown({ cases: [passed, BAD], judgement: { gates, comparison: null }, exit: 3 });
  expect(text).toMatch(
    /^### <code>calculator&#64;1&#46;2&#46;0<\/code>: a gate failed\n\n\| model \| <code>m<\/code> \|/,
  );
  expect(text).toContain("\n| reward | **0.500 ± 0.100**, 95 %: 0.300 to 0.700 |\n");
  expect(text).toContain("\n| rollouts | scored 8, failed 2 |\n| not scored | <code>provider 2</code> |\n");
  expect(text).toContain("\n| fail-under | failed | <code>mean reward 0&#46;500 is under 0&#46;8</code> |\n");
  expect(text).toContain("<summary>Tasks that did not pass: 1</summary>");
  expect(text).toContain(
    "\n| example 3 | <code>reward 0&#46;000 is under 0&#46;5</code> | <code>I do not know</code> | ro_1 |",
  );
});

test.each([
  [0, {}, "completed"],
  [5, {}, "inconclusive"],
  [1, {}, "failed: some rollouts have no score"],
  [1, { status: "cancelled" }, "the run is cancelled"],
] as const)("an eval that exits %d with %j is titled: %s", (exit, more, verdict) => {
  expect(markdown({ run: { ...COMPLETED, ...more }, exit }).split("\n")[0]).toMatch(new RegExp(`: ${verdict}$`));
});

test("a comparison shows the paired difference, and first the tasks that got worse", () => {
  const [task] = COMPARISON.tasks;
  if (task === undefined) throw new Error("the example has no task");
  const tasks = [
    { ...task, example_id: 1, baseline: 0, run: 1 },
    { ...task, example_id: 2, baseline: 1, run: 0, task_text: "a|b" },
  ];
  const comparison: RunComparison = { ...COMPARISON, tasks, n_flipped: 12 };
  const text = markdown({ judgement: { gates: [], comparison } });
  expect(text).toMatch(
    /\| run_\w+ \| 0\.417 \| 0\.583 \| \+0\.167 \(95 %: −0\.104 to \+0\.438\) \| 3 better, 1 worse, 2 the same \|/,
  );
  expect(text).toContain("the first 2 of 12");
  expect(text.indexOf("<code>2 a&#124;b</code>")).toBeLessThan(text.indexOf("<code>1 "));
});

test("text of a model takes no effect: no markup, no link, no mention, no further cell or line", () => {
  const said = "</code>@octocat `x` \\| **b** [a](https://x.example) ![i](//x)\n| <img src=x> #1\u202e\u0000";
  const shown = inlineCode(said);
  expect(shown.replace(/&#\d+;/g, "")).toMatch(/^<code>[\w ()!=]*<\/code>$/);
  expect(shown).toContain("&#60;&#47;code&#62;&#64;octocat &#96;x&#96; &#92;&#124;");
  const lines = markdown({ cases: [{ ...BAD, message: said, reply: said }] }).split("\n");
  const row = lines.find((line) => line.startsWith("| example 3")) ?? "";
  expect(row.match(/\|/g)).toHaveLength(5);
});

test("whatever the run holds, the text fits into a comment of GitHub", () => {
  const long = "\u{1d800}".repeat(1_000_000);
  const score = { mean: 0.5, se: 0.1, n: 3 };
  const metrics = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`${long.slice(0, 238)}${at}`, score]));
  const error = { code: "internal", message: long };
  const run = { ...COMPLETED, model: long, error, report: { ...COMPLETED.report, metrics } };
  const gates: GateResult[] = (["min_scored", "fail_under", "baseline"] as const).map((gate) => {
    return { gate, verdict: "failed", message: long };
  });
  const [task] = COMPARISON.tasks;
  if (task === undefined) throw new Error("the example has no task");
  const tasks = Array.from({ length: 20 }, () => ({ ...task, task_text: long }));
  const comparison: RunComparison = { ...COMPARISON, tasks, n_flipped: 20 };
  const cases = Array.from({ length: 100 }, () => ({ ...BAD, message: long, reply: long }));
  expect(markdown({ run, cases, judgement: { gates, comparison }, exit: 3 }).length).toBeLessThan(60_000);
});

test("a file that cannot be written is an error with the flag's name", () => {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-markdown-"));
  const ended = { run: COMPLETED, cases: [], judgement: NOTHING, exit: 0 } as const;
  expect(() => writeMarkdown(folder, ended)).toThrow(/--markdown: EISDIR/);
});
