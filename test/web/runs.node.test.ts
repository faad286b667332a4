import { expect, test } from "vitest";
import type { RunCounts, RunView } from "../../src/contract/run.ts";
import { binText } from "../../src/web/components/histogram.tsx";
import { hasEnded, leftText, progressOf, secondsLeft, withProgress } from "../../src/web/pages/run/progress.ts";
import { binFilter, scoredBy, wordFilter } from "../../src/web/pages/run/rollout-links.tsx";
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

test("an invalid kind or status in the URL filters nothing", () => {
  expect(runFilter({ kind: "<script>", status: "failed", environment: "" })).toEqual({
    ...{ kind: undefined, status: "failed", environment: undefined },
  });
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
