/** Judgements on runs whose comparison the platform answers as given. */
import { expect, test } from "vitest";
import { judgeDifferences } from "../../src/cli/eval/baseline-gate.ts";
import { exitOfGates, type GateArguments, judge } from "../../src/cli/eval/gates.ts";
import type { RunComparison } from "../../src/contract/comparison.ts";
import type { RunView } from "../../src/contract/run.ts";
import { COMPARISON } from "../kernel/http/examples.ts";
import { recorded } from "../sdk/recording-fetch.ts";
import { aRun } from "./a-run.ts";

const NO_GATES: GateArguments = {
  ...{ failUnder: null, minScored: null, baseline: null, maxDrop: null, metric: null },
};

function ended(changes: Partial<RunView["report"]["reward"]> = {}, more: Partial<RunView> = {}) {
  const run = aRun({ scored: 10 }, { status: "completed", ...more });
  return { ...run, report: { ...run.report, reward: { ...run.report.reward, ...changes } } };
}

/** The judgement and the exit code of one gate; `difference`: the platform's comparison with the baseline. */
async function verdict(
  run: RunView,
  args: Partial<GateArguments>,
  difference: Partial<RunComparison["difference"]> | null = null,
) {
  const compared = { ...COMPARISON, difference: { ...COMPARISON.difference, ...difference } };
  const { client } = recorded(() => Response.json(compared));
  const baseline = difference === null ? null : { id: "run_b", why: "as named" };
  const { gates } = await judge(client, run, { ...NO_GATES, ...args }, baseline);
  return [gates[0]?.verdict, exitOfGates(gates), gates[0]?.message] as const;
}

test.each([
  [0.8, "passed", null],
  [0.79999999999999, "passed", null],
  [0.79, "failed", 3],
  [null, "failed", 3],
])("a mean of %s against --fail-under 0.8 is %s", async (mean, said, exit) => {
  expect((await verdict(ended({ mean }), { failUnder: 0.8 })).slice(0, 2)).toEqual([said, exit]);
});

test("a mean above the threshold whose interval is not says so", async () => {
  const [, , message] = await verdict(ended({ mean: 0.5, ci95: [0.3, 0.7] }), { failUnder: 0.4 });
  expect(message).toBe("mean reward 0.500 ± 0.100 is not under 0.4, but its 95 % interval extends down to 0.300");
});

test("--metric selects the score, and a missing one fails the gate with its name", async () => {
  const run = ended();
  const metrics = { right: { mean: 0.2, se: null, n: 10 } };
  const scored = { ...run, report: { ...run.report, metrics } };
  const right = await verdict(scored, { failUnder: 0.8, metric: "right" });
  expect(right).toEqual(["failed", 3, "mean right 0.200 is under 0.8"]);
  const nope = await verdict(scored, { failUnder: 0.8, metric: "nope" });
  expect(nope).toEqual(["failed", 3, "no score is called nope; known scores: right"]);
});

test.each<[string, [number, number] | null, number | null, string, number | null]>([
  ["wholly below 0", [-0.3, -0.1], null, "failed", 3],
  ["on both sides of 0", [-0.3, 0.1], null, "passed", null],
  ["of no width at 0", [0, 0], null, "passed", null],
  ["of a single task", null, null, "inconclusive", 5],
  ["above the drop allowed", [-0.04, 0.02], 0.05, "passed", null],
  ["on both sides of the drop allowed", [-0.1, 0.02], 0.05, "inconclusive", 5],
  ["below the drop allowed", [-0.1, -0.06], 0.05, "failed", 3],
  ["reaching below 0 where no drop is allowed", [-0.01, 0.02], 0, "inconclusive", 5],
])("an interval %s is judged so", async (_, ci95, maxDrop, said, exit) => {
  const judged = await verdict(ended(), { maxDrop }, { ci95 });
  expect(judged.slice(0, 2)).toEqual([said, exit]);
});

/** A comparison of 21 tasks whose interval is by Student's t: 2.086 standard errors to each side. */
function compared(id: string, mean: number, se: number): RunComparison {
  const ci95: [number, number] = [mean - 2.086 * se, mean + 2.086 * se];
  const difference = { mean, se, ci95, t: mean / se, df: 20, p: null };
  return { ...COMPARISON, baseline: { ...COMPARISON.baseline, id }, difference };
}

test("with several baselines a drop counts only after Holm's correction, and each baseline is named", () => {
  // p is 0.030, 0.0033 and 0.77.
  const drops = [compared("run_a", -0.07, 0.03), compared("run_b", -0.1, 0.03), compared("run_c", 0.01, 0.034)];
  expect(judgeDifferences(drops.slice(0, 1), null)).toMatchObject([{ verdict: "failed" }]);
  const judged = judgeDifferences(drops, null);
  expect(judged.map(({ verdict }) => verdict)).toEqual(["passed", "failed", "passed"]);
  expect(exitOfGates(judged)).toBe(3);
  expect(judged.map(({ message }) => message)).toEqual([
    "against run_a: the paired difference −0.070 (95 %: −0.133 to −0.007, p by Holm 0.060) is not significantly worse",
    "against run_b: the paired difference −0.100 (95 %: −0.163 to −0.037, p by Holm 0.0099) is significantly worse",
    expect.stringContaining("p by Holm 0.77) is not significantly worse"),
  ]);
});

test("an allowed drop must hold against each baseline", () => {
  const [close, open, far] = [compared("run_a", 0, 0.01), compared("run_b", 0, 0.05), compared("run_c", -0.2, 0.01)];
  const judged = (...all: readonly RunComparison[]) => {
    const gates = judgeDifferences(all, 0.05);
    return [gates.map(({ verdict }) => verdict), exitOfGates(gates)];
  };
  expect(judged(close, close)).toEqual([["passed", "passed"], null]);
  expect(judged(close, open)).toEqual([["passed", "inconclusive"], 5]);
  expect(judged(close, open, far)).toEqual([["passed", "inconclusive", "failed"], 3]);
});

test("the p of an allowed drop is named as such: the p of the table is of another test", () => {
  const [gate] = judgeDifferences([compared("run_a", -0.07, 0.03), compared("run_b", 0, 0.03)], 0.05);
  expect(gate?.message).toContain("(95 %: −0.133 to −0.007, p of a drop of more than 0.05, by Holm 0.51)");
});

test("a run or a baseline that has not completed is not judged, and its status is named", () => {
  const { run, baseline, ...good } = compared("run_a", 0.1, 0.01);
  const failed = { ...good, run, baseline: { ...baseline, status: "failed" as const } };
  const both = { ...failed, run: { ...run, status: "running" as const } };
  const judged = judgeDifferences([failed, both, { ...good, run, baseline }], null);
  expect(judged).toMatchObject([
    { verdict: "inconclusive", message: "against run_a: the baseline is failed: only completed runs are judged" },
    { verdict: "inconclusive", message: expect.stringContaining("the run is running and the baseline is failed: ") },
    { verdict: "passed" },
  ]);
  expect(exitOfGates(judged)).toBe(5);
});

test("equal differences leave no doubt with several baselines, and a single common task decides nothing", () => {
  const equal = compared("run_a", -1, 0);
  const { difference, ...one } = compared("run_b", -1, 0);
  const single = { ...one, difference: { ...difference, se: null, ci95: null, t: null, df: null } };
  expect(judgeDifferences([equal, single], null).map(({ verdict }) => verdict)).toEqual(["failed", "inconclusive"]);
});

test("runs that cannot be compared are inconclusive, with the platform's message", async () => {
  const message = "no task is scored in both runs";
  const error = { code: "conflict", message, param: "baseline", type: "invalid_request_error" };
  const { client } = recorded(() => Response.json({ error }, { status: 409 }));
  const baseline = { id: "run_b", why: "as named" };
  const { gates, comparison } = await judge(client, ended(), NO_GATES, baseline);
  expect([gates, comparison]).toEqual([[{ gate: "baseline", verdict: "inconclusive", message }], null]);
});

test("a broken run is not judged; one with too few scores is", async () => {
  const broke = await verdict(ended({}, { status: "cancelled" }), { failUnder: 0 });
  expect(broke).toEqual([undefined, null, undefined]);
  const error = { code: "too_few_scored", message: "" };
  const few = await verdict(ended({}, { status: "failed", error }), { minScored: 0.95 });
  expect(few.slice(0, 2)).toEqual(["failed", 3]);
});

test("a run with too few scores is judged by --min-scored alone: its mean is compared with nothing", async () => {
  const error = { code: "too_few_scored", message: "" };
  const run = ended({ mean: 0.1 }, { status: "failed", error });
  const asked = { ...NO_GATES, failUnder: 0.8, maxDrop: 0.02 };
  const { client } = recorded(() => Response.json(COMPARISON));
  const baseline = { id: "run_b", why: "as named" };
  expect(await judge(client, run, asked, baseline)).toEqual({ gates: [], comparison: null });
  const counted = await judge(client, run, { ...asked, minScored: 0.95 }, baseline);
  expect(counted.gates.map(({ gate, verdict }) => [gate, verdict])).toEqual([["min_scored", "failed"]]);
  expect(exitOfGates(counted.gates)).toBe(3);
});

test("a failed gate outweighs an inconclusive one", () => {
  const message = "";
  const failed = { gate: "fail_under", verdict: "failed", message } as const;
  const unclear = { gate: "baseline", verdict: "inconclusive", message } as const;
  expect(exitOfGates([unclear, failed])).toBe(3);
});
