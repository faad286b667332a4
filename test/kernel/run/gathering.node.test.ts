/** How many gatherers a run has, what they send together, and how the run's object takes it. */
import { expect, test, vi } from "vitest";
import { DEBOUNCE_MS, GATHER_MS, gatherWaitMs } from "../../../src/kernel/kit/gather-wait.ts";
import type { GatheredCall } from "../../../src/kernel/messages/gathered.ts";
import type { RolloutEntry } from "../../../src/kernel/messages/run-records.ts";
import type { RolloutReport } from "../../../src/kernel/messages/wire.ts";
import {
  CALLS_TOGETHER,
  CHARACTERS_TOGETHER,
  gatherersOf,
  REPLY_CHARACTERS,
  togetherOf,
} from "../../../src/kernel/run/gathering.ts";
import { type GatheredMethods, takeGathered } from "../../../src/kernel/run/take-gathered.ts";
import { Untold } from "../../../src/kernel/run/untold.ts";
import { RUN_SPEC } from "../run-rows.ts";

test.for([
  [1, 0],
  [5000, 0],
  [5001, 3],
  [10_000, 4],
  [50_000, 20],
] as const)("a run with %i rollouts at once has %i gatherers", ([rollouts, gatherers]) => {
  expect(gatherersOf({}, rollouts)).toBe(gatherers);
});

test("a variable lowers the number from which a run has gatherers; other values are not read, and there are at most 64", () => {
  expect(gatherersOf({ GATHERED_ABOVE: 8 }, 8)).toBe(0);
  expect(gatherersOf({ GATHERED_ABOVE: 8 }, 24)).toBe(6);
  expect(gatherersOf({ GATHERED_ABOVE: 1 }, 50_000)).toBe(64);
  expect(gatherersOf({ GATHERED_ABOVE: Number.NaN }, 5000)).toBe(0);
  expect(gatherersOf({ GATHERED_ABOVE: 0 }, 5001)).toBe(3);
});

test("calls are sent together up to a number and a size, and a larger one alone", () => {
  expect(togetherOf([])).toBe(0);
  expect(togetherOf(Array<number>(CALLS_TOGETHER + 5).fill(1))).toBe(CALLS_TOGETHER);
  expect(togetherOf([CHARACTERS_TOGETHER - 1, 1, 1])).toBe(2);
  expect(togetherOf([CHARACTERS_TOGETHER * 4, 1])).toBe(1);
});

test("an item after a silence waits for the debounce, and dense items until calls are far enough apart", () => {
  expect(gatherWaitMs(Number.POSITIVE_INFINITY)).toBe(DEBOUNCE_MS);
  expect(gatherWaitMs(GATHER_MS)).toBe(DEBOUNCE_MS);
  expect(gatherWaitMs(0)).toBe(GATHER_MS);
  expect(gatherWaitMs(200)).toBe(50);
  expect(gatherWaitMs(0, 80)).toBe(80);
  expect(gatherWaitMs(0, 10 * GATHER_MS)).toBe(GATHER_MS);
  expect(gatherWaitMs(-5000)).toBe(GATHER_MS);
});

function report(rollout_id: string): RolloutReport {
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  return {
    ...{ group: 0, slot: 0, attempt: 0, rollout_id, example_id: 0, task_key: "k", failure: null, cancelled: null },
    ...{ error: null, stop_run: null, digest: "d", bytes: 2, trajectory: "{}", stop_condition: "x", usage },
    ...{ is_truncated: false, turns: 1, calls: 1, started_at: 1, ended_at: 2 },
  };
}

const answered = (...ids: readonly string[]): GatheredCall => ({ method: "answered", args: [ids.map(report)] });

/** Answers every report with its id; one that is called `poison` makes the call throw. */
function runThatAnswers(more: Partial<GatheredMethods> = {}): GatheredMethods {
  return {
    admit: () => null,
    answered: (reports) => {
      if (reports.some(({ rollout_id }) => rollout_id === "poison")) throw new TypeError("it is poison");
      return reports.map(({ rollout_id }) => ({ known: true, refused: rollout_id }));
    },
    allow: (asks) => asks.map(({ asks: ceiling }) => ({ ceiling })),
    scoringGroupsToScore: () => null,
    scored: () => undefined,
    requestJudgements: () => undefined,
    takeJudging: () => null,
    judged: () => null,
    ...more,
  };
}

test("reports of several callers are taken in one, and each caller has its own answers in order", () => {
  const run = runThatAnswers();
  const spy = vi.spyOn(run, "answered");
  const replies = takeGathered([answered("a"), answered("b", "c"), answered(), answered("d")], run);
  expect(replies).toEqual([
    { done: [{ known: true, refused: "a" }] },
    {
      done: [
        { known: true, refused: "b" },
        { known: true, refused: "c" },
      ],
    },
    { done: [] },
    { done: [{ known: true, refused: "d" }] },
  ]);
  expect(spy).toHaveBeenCalledTimes(1);
});

test("an error of one caller's call fails that call only, with its name and message", () => {
  const throws = () => {
    throw new RangeError("no such group");
  };
  const calls: GatheredCall[] = [
    answered("a"),
    answered("poison", "b"),
    answered("c"),
    { method: "scoringGroupsToScore", args: [[1]] },
    { method: "admit", args: [[]] },
  ];
  expect(takeGathered(calls, runThatAnswers({ scoringGroupsToScore: throws }))).toEqual([
    { done: [{ known: true, refused: "a" }] },
    { failed: { name: "TypeError", message: "it is poison" } },
    { done: [{ known: true, refused: "c" }] },
    { failed: { name: "RangeError", message: "no such group" } },
    { done: null },
  ]);
});

test("scores of several consumers are stored together, but those that end a judging claim alone", () => {
  const scored = vi.fn();
  const member = (rollout_id: string) => {
    const record = { rollout_id, reward: 1, scores: [], scoring_errors: [], unscored: null };
    return { group: 0, slot: 0, attempt: 0, record };
  };
  const claim = { unit: 1, claim: 2, spent: { micros: 0, lost: { calls: 0, micros: 0 } } };
  const calls: GatheredCall[] = [
    { method: "scored", args: [[member("a")]] },
    { method: "scored", args: [[member("b")], [], claim] },
    { method: "scored", args: [[member("c")], []] },
  ];
  expect(takeGathered(calls, runThatAnswers({ scored }))).toEqual(calls.map(() => ({ done: undefined })));
  expect(scored.mock.calls).toEqual([
    [[member("a"), member("c")], []],
    [[member("b")], [], claim],
  ]);
});

test("results that fill the reply leave the calls after them for later, but never the first", () => {
  const member = { group: 0, slot: 0, attempt: 0, rollout_id: "r", host: 1, digest: "d" };
  const unit = { unit: 1, members: [{ ...member, text: "x".repeat(REPLY_CHARACTERS + 1) }] };
  const run = runThatAnswers({ scoringGroupsToScore: () => ({ spec: RUN_SPEC, units: [unit] }) });
  const ask: GatheredCall = { method: "scoringGroupsToScore", args: [[1]] };
  const replies = takeGathered([ask, ask, answered("a")], run);
  expect(replies.map((reply) => Object.keys(reply))).toEqual([["done"], ["later"], ["done"]]);
});

test("rollouts to be notified are read once, and one that was notified or has ended is left out", () => {
  const rows = new Map([1, 2, 3, 4].map((seq) => [seq, { seq, status: "running", told: 0 }]));
  const all = vi.fn(() => [...rows.keys()]);
  // Only these columns are looked at.
  const untold = new Untold({ all, bySeq: (seq) => (rows.get(seq) ?? null) as RolloutEntry | null });
  const first = (limit: number) => untold.first(limit).map(({ seq }) => seq);
  expect([first(1), first(2)]).toEqual([[1], [1, 2]]);
  rows.set(1, { seq: 1, status: "running", told: 1 });
  rows.set(2, { seq: 2, status: "done", told: 0 });
  expect(first(4)).toEqual([3, 4]);
  for (const seq of [3, 4]) rows.set(seq, { seq, status: "running", told: 1 });
  expect([first(4), first(4)]).toEqual([[], []]);
  expect(all).toHaveBeenCalledTimes(1);
  rows.set(3, { seq: 3, status: "running", told: 0 });
  untold.forget();
  expect(first(4)).toEqual([3]);
});
