import { expect, test } from "vitest";
import type { RunCounts, RunView } from "../../src/contract/run.ts";
import { binText } from "../../src/web/components/histogram.tsx";
import { changeText, trendsOf } from "../../src/web/pages/home/trends.ts";
import { hasEnded, leftText, progressOf, secondsLeft, withProgress } from "../../src/web/pages/run/progress.ts";
import { binFilter, scoredBy, wordFilter } from "../../src/web/pages/run/rollout-links.tsx";
import { groupings, groupingText, groupRows, isWhole, rowIdOf, scoresOf } from "../../src/web/pages/runs/group-rows.ts";
import { runFilter, withLatest } from "../../src/web/pages/runs/run-list.ts";

const COUNTS: RunCounts = {
  ...{ planned: 100, pending: 40, dispatched: 60, in_flight: 20, scored: 30 },
  ...{ unscored: { judge: 2 }, failed: { provider: 5, timeout: 2 }, cancelled: { user: 1 } },
};

function run(given: Partial<RunView>): RunView {
  const made: Partial<RunView> = { id: "run_a", kind: "eval", status: "running", counts: COUNTS, training: null };
  return { ...made, created_at: 1000, ...given } as RunView;
}

test("the rest of an eval is counted by the rollouts that ended, with any outcome", () => {
  expect(progressOf(run({}))).toEqual({ done: 40, all: 100, unit: "rollouts" });
  expect(secondsLeft(run({}), 1080)).toBe(120);
});

test("no remaining time is shown for a run that is not running, or without an ended rollout", () => {
  expect(secondsLeft(run({ status: "paused" }), 1080)).toBeNull();
  const begun = { ...COUNTS, scored: 0, unscored: {}, failed: {}, cancelled: {} };
  expect(secondsLeft(run({ counts: begun }), 1080)).toBeNull();
  expect(hasEnded(run({ status: "cancelled" }))).toBe(true);
});

test("a training run counts its steps, and from a list it counts nothing", () => {
  const training = { steps_trained: 5, max_steps: 20 } as RunView["training"];
  expect(secondsLeft(run({ kind: "training", training }), 1050)).toBe(150);
  expect(progressOf(run({ kind: "training" }))).toBeNull();
});

test("a remaining time is rounded", () => {
  expect([0.2, 59, 61, 5000, 20_000].map(leftText)).toEqual(["~1 s", "~59 s", "~1 min", "~83 min", "~6 h"]);
});

test("an event that is older than the run as read changes nothing", () => {
  const reward = { mean: 0.5 };
  const read = run({ last_event: 12, report: { turns: 70, reward } as RunView["report"] });
  const data = { counts: { ...COUNTS, scored: 31 }, reward: { mean: 0.1 }, turns: 71, usage: {} };
  expect(withProgress(read, { id: 12, data } as never)).toBe(read);
  const next = withProgress(read, { id: 13, data } as never);
  expect([next.counts.scored, next.report.turns, next.report.reward.mean]).toEqual([31, 71, 0.1]);
  expect(withProgress(next, { id: 13, data: { ...data, turns: 72 } } as never)).toBe(next);
});

test("runs that were read again keep their places, and new ones come first", () => {
  const old = [run({ id: "b", created_at: 20 }), run({ id: "a", created_at: 10 })];
  const latest = [run({ id: "c", created_at: 30 }), run({ id: "b", created_at: 20, status: "completed" })];
  const listed = withLatest(old, [...latest, run({ id: "long ago", created_at: 1 })]);
  expect(listed.map(({ id, status }) => [id, status])).toEqual([
    ["c", "running"],
    ["b", "completed"],
    ["a", "running"],
  ]);
});

test("in another order, runs that were read again keep their places, and no run is added", () => {
  const old = [run({ id: "b", created_at: 10 }), run({ id: "a", created_at: 20 })];
  const latest = [run({ id: "c", created_at: 30 }), run({ id: "a", created_at: 20, status: "completed" })];
  expect(withLatest(old, latest, false).map(({ id, status }) => [id, status])).toEqual([
    ["b", "running"],
    ["a", "completed"],
  ]);
});

test("the URL filters and orders the list; what is invalid in it does nothing", () => {
  expect(
    runFilter({ kind: "<script>", status: "failed", environment: "", metadata: "branch", sort: "-color" }),
  ).toEqual({
    status: "failed",
  });
  expect(runFilter({ sort: "-created" })).toEqual({});
  expect(runFilter({ search: "x".repeat(300), model: "m", metadata: "a=b=c", sort: "-reward" })).toEqual({
    ...{ search: "x".repeat(200), model: "m", metadata: { a: "b=c" }, sort: "reward", order: "desc" },
  });
  expect(runFilter({ sort: "created" })).toEqual({ sort: "created", order: "asc" });
});

/** A completed eval with this mean, of which `scored` of 100 rollouts have a score. */
function scoredRun(id: string, mean: number | null, scored: number, given: Partial<RunView> = {}): RunView {
  const report = { reward: { mean, n_rollouts: scored } } as RunView["report"];
  const environment = { id: "math" } as RunView["environment"];
  return run({ id, status: "completed", report, environment, model: "m", metadata: {}, ...given });
}

test("a mean stands for the whole run if it completed and nearly all of its rollouts have a score", () => {
  expect([100, 95, 94, 50].map((scored) => isWhole(scoredRun("a", 0.5, scored)))).toEqual([true, true, false, false]);
  const others = (["failed", "cancelled", "running"] as const).map((status) => scoredRun("a", 0.5, 100, { status }));
  expect(others.map(isWhole)).toEqual([false, false, false]);
  expect(isWhole(scoredRun("a", 0.5, 10, { kind: "training" }))).toBe(true);
});

test("runs are grouped by a key of their metadata, those without it last", () => {
  const runs = [
    scoredRun("c", 0.7, 10),
    scoredRun("b", 0.4, 100, { metadata: { branch: "main" }, created_at: 20 }),
    scoredRun("a", 0.6, 100, { metadata: { branch: "main" }, created_at: 10 }),
  ];
  expect(groupRows(runs, "metadata:branch").map(rowIdOf)).toEqual(["group main", "b", "a", "group no branch", "c"]);
  expect(groupRows(runs, undefined).map(rowIdOf)).toEqual(["c", "b", "a"]);
  expect([scoresOf(runs), scoresOf(runs.slice(0, 1))]).toEqual([{ latest: 0.4, best: 0.6 }, null]);
  expect(groupings(runs, undefined)).toEqual(["environment", "model", "metadata:branch"]);
  expect(groupings([], "metadata:gone").map(groupingText)).toEqual(["environment", "model", "gone"]);
});

test("a trend has the scores of the whole runs of an environment and a model, the oldest first", () => {
  const runs = [
    scoredRun("e", null, 0, { status: "running" }),
    scoredRun("d", 0.5, 100),
    scoredRun("c", 0.1, 100, { model: "other" }),
    scoredRun("b", 0.9, 20),
    scoredRun("a", 0.7, 100),
  ];
  const shown = trendsOf(runs).map(({ model, scores, latest, scored, before }) => {
    return [model, scores, latest.id, scored?.id, before?.id];
  });
  expect(shown).toEqual([
    ["m", [0.7, 0.5], "e", "d", "a"],
    ["other", [0.1], "c", "c", undefined],
  ]);
  expect([[0.7, 0.5], [0.5, 0.7], [0.5, 0.5], [0.5]].map(changeText)).toEqual(["−0.200", "+0.200", "±0.000", null]);
});

test("a bin of a histogram links to the rollouts that it counts", () => {
  const filters = (of: string, edges: readonly number[], whole = false) => {
    const bins = edges.slice(1).map((to, at) => ({ from: edges[at] ?? to, to, n: 1 }));
    return bins.map((bin) => binFilter({ of, bins, whole }, bin).replace(" superseded:false", ""));
  };
  expect(filters("reward", [0, 0.5, 1])).toEqual(["reward>=0 reward<0.5", "reward>=0.5 reward<=1"]);
  expect(filters("duration", [1e-7, 2, 3])[0]).toBe("duration>=0.000000 duration<2");
  expect(filters("reward", [1, 1])).toEqual(["reward=1"]);
  expect(filters("reward", [0, 1, 2], true)).toEqual(["reward=0", "reward=1"]);
  expect(filters("turns", [1, 4, 7], true)).toEqual(["turns>=1 turns<=3", "turns>=4 turns<=6"]);
});

test("a bin of whole numbers names them", () => {
  expect([binText({ from: 0, to: 1 }, true), binText({ from: 1, to: 4 }, true)]).toEqual(["0", "1 to 3"]);
  expect([binText({ from: 2, to: 2 }, true), binText({ from: 0, to: 0.05 }, false)]).toEqual(["2", "0 to 0.05"]);
});

test("names that a filter would misread are in quotes", () => {
  expect([scoredBy("turns"), scoredBy("right")]).toEqual(['-"turns":null', "-right:null"]);
  expect(wordFilter("stop", "two words")).toBe('stop:"two words"');
});
