/** What the pages of trainings compute: the difference of two steps, and which training learns fastest. */
import { expect, test } from "vitest";
import type { RolloutSummary } from "../../src/contract/rollout-list.ts";
import type { OutlineTurn } from "../../src/contract/turns.ts";
import { differenceText, dollarsText, numberText, percentText, scoreText } from "../../src/web/components/format.ts";
import { pointText, valueAt } from "../../src/web/components/plot-point.ts";
import { curveOf, hasAxis, learningOf, overlayOf, usualLevel } from "../../src/web/pages/compare/learning.ts";
import { textDifference } from "../../src/web/pages/compare/text-difference.ts";
import { lastRewards } from "../../src/web/pages/home/last-rewards.ts";
import { stateDifference } from "../../src/web/pages/rollout/state-difference.ts";
import { failedCallsOf, mostFrequent, unreadText } from "../../src/web/pages/run/failed-calls.ts";
import { isBinary, rewardSeries } from "../../src/web/pages/run/reward-series.ts";
import { seriesOf } from "../../src/web/pages/run/series.ts";
import {
  causesOf,
  countTools,
  factsOfStep,
  scoreChanges,
  sharedTasks,
  toolCauses,
} from "../../src/web/pages/run/step-facts.ts";

function row(task_key: string, reward: number | null, change: Partial<RolloutSummary> = {}): RolloutSummary {
  const scores = reward === null ? [] : [{ name: "right", score: reward, weight: 1 }];
  return {
    ...{
      object: "rollout_summary",
      id: `ro_${task_key}`,
      run_id: "run_1",
      group: Number(task_key),
      slot: 0,
      attempt: 0,
    },
    ...{ superseded_by: null, status: "done", cancelling: false, outcome: reward === null ? "failed" : "scored" },
    ...{ reason: null, task_key, task_text: `task ${task_key}`, example_id: 0, member: null, reward, advantage: null },
    ...{ scores, scores_left_out: 0, stop_condition: "no_tools_called", is_truncated: false, turns: 1, calls: 1 },
    ...{ prompt_tokens: 10, completion_tokens: 10, started_at: 0, ended_at: 1, duration: 1, error: null },
    ...{ cost: { policy_micros: null, judge_micros: 0, charged_micros: 0 }, step: 1, has_judgements: false },
    ...change,
  };
}

test("the change of the reward is divided among its scores by their weights, and large changes are named", () => {
  const scores = (right: number, brief: number) => ({
    scores: [
      { name: "right", score: right, weight: 1 },
      { name: "brief", score: brief, weight: 0.1 },
      { name: "calls", score: 3, weight: 0 },
    ],
  });
  const before = factsOfStep([row("1", 1.1, scores(1, 1)), row("2", 1, scores(1, 0))]);
  const cut = { is_truncated: true, completion_tokens: 90 };
  const now = factsOfStep([row("1", 0, { ...scores(0, 0), ...cut }), row("3", null, { scores: [] })]);
  expect(scoreChanges(before, now).map(({ name, part }) => [name, part])).toEqual([
    ["right", -1],
    ["brief", -0.05],
    ["calls", 0],
  ]);
  expect(causesOf(before, now).map(({ kind, name }) => `${kind} ${name}`.trim())).toEqual([
    "score right",
    "score brief",
    "cut off",
    "failed",
    "tokens",
  ]);
  expect(sharedTasks(before, now)).toEqual({ n: 1, before: 1.1, now: 0 });
  expect(now.tasks.map(({ task_key, mean }) => [task_key, mean])).toEqual([
    ["1", 0],
    ["3", null],
  ]);
});

test("a step without rollouts has no means, never 0", () => {
  expect(factsOfStep([])).toMatchObject({ rollouts: 0, reward: null, cut_off: null, turns: null, tasks: [] });
});

function outlineTurn(index: number, change: Partial<OutlineTurn>): OutlineTurn {
  return {
    ...{ index, at_ms: 0, latency_ms: 0, calls: 1, messages: 0, tool_calls: 0, tools: [], failed: 0, stored_bytes: 0 },
    ...{ is_truncated: false, forked: false, ...change },
  };
}

test("of each rollout several turns with failed calls are kept, up to five", () => {
  const failing = (index: number) => outlineTurn(index, { tool_calls: 1, tools: ["add"], tool_calls_failed: 1 });
  const counts = new Map();
  countTools("ro_1", [failing(0), outlineTurn(1, {}), failing(2)], counts);
  countTools("ro_2", [0, 1, 2, 3, 4, 5, 6].map(failing), counts);
  expect(counts.get("add")).toEqual({
    ...{ calls: 9, failed: 9 },
    failing: [
      { rollout: "ro_1", turns: [0, 2] },
      { rollout: "ro_2", turns: [0, 1, 2, 3, 4] },
    ],
  });
});

test("failed calls are counted by tool, as recorded or else by the results in the next turn", () => {
  const counts = new Map();
  countTools(
    "ro_1",
    [
      outlineTurn(0, { tool_calls: 2, tools: ["add"], tool_calls_failed: 1 }),
      outlineTurn(1, { tool_calls: 1, tools: ["look"], failed: 1 }),
      outlineTurn(2, { failed: 1 }),
    ],
    counts,
  );
  expect(Object.fromEntries(counts)).toEqual({
    add: { calls: 2, failed: 1, failing: [{ rollout: "ro_1", turns: [0] }] },
    look: { calls: 1, failed: 1, failing: [{ rollout: "ro_1", turns: [1] }] },
  });
  expect(toolCauses(new Map(), counts).map(({ name, now }) => [name, now])).toEqual([
    ["look", 1],
    ["add", 0.5],
  ]);
});

test("failed calls have the text of their results, and the most frequent form of text is found", () => {
  const said = (text: string) => ({ content: [{ type: "text", text, length: text.length }], left_out: 0 });
  const call = (id: string, name: string) => ({ id, name, arguments: { text: "{}", length: 2 } });
  const turn = (tool_failed?: (boolean | null)[]) => ({
    index: 2,
    completion: {
      role: "assistant",
      ...said(""),
      tool_calls: [call("a", "add"), call("b", "look"), call("c", "look")],
    },
    ...(tool_failed !== undefined && { tool_failed }),
  });
  const after = [
    { role: "tool", tool_call_id: "a", ...said("Error: 7 is not a word") },
    { role: "tool", tool_call_id: "b", ...said("Error: line 3") },
  ];
  const of = (tool_failed?: (boolean | null)[]) =>
    failedCallsOf("ro_1", turn(tool_failed), after).map(({ tool, text }) => [tool, text]);
  // Without a record, results that read like errors count.
  expect(of()).toEqual([
    ["add", "Error: 7 is not a word"],
    ["look", "Error: line 3"],
  ]);
  expect(of([false, null, true])).toEqual([
    ["look", "Error: line 3"],
    ["look", null],
  ]);
  const all = ["line 3", "7 is not a word", "line 44"].map((text, at) => ({
    rollout: `ro_${at}`,
    turn: 0,
    tool: "t",
    text,
  }));
  expect(mostFrequent(all)?.text).toBe("line 3");
  expect(mostFrequent([])).toBeNull();
});

const steps = (...rewards: readonly (number | null)[]) =>
  rewards.map((reward, at) => ({
    step: at + 1,
    at: 1000 + 60 * (at + 1),
    values: { ...(reward !== null && { "train/agg/all/reward/mean": reward }), "batch/tokens": 500 },
  }));

test("the training that reaches the level first is the fastest, by steps, by time and by tokens", () => {
  const slow = { id: "slow", created_at: 1000, steps: steps(0.1, 0.2, null, 0.6) };
  const fast = { id: "fast", created_at: 1050, steps: steps(0.1, 0.7, 0.6) };
  const curves = (axis: "step" | "time" | "tokens") => [slow, fast].map((run) => curveOf(run, axis, 0));
  expect(usualLevel(curves("step"))).toEqual({ level: 0.4, lowest: 0.1, highest: 0.7 });
  const reached = (axis: "step" | "time" | "tokens") =>
    learningOf(curves(axis), 0.4).map(({ id, reached: at }) => [id, at]);
  expect(reached("step")).toEqual([
    ["fast", 2],
    ["slow", 4],
  ]);
  expect(reached("time")).toEqual([
    ["fast", 70],
    ["slow", 240],
  ]);
  expect(reached("tokens")).toEqual([
    ["fast", 1000],
    ["slow", 2000],
  ]);
  expect(learningOf(curves("step"), 9).map(({ id, reached: at }) => [id, at])).toEqual([
    ["fast", null],
    ["slow", null],
  ]);
  expect(hasAxis("tokens", [{ ...slow, steps: slow.steps.map((step) => ({ ...step, values: {} })) }])).toBe(false);
});

test("the last rewards of a training have no steps without a reward, in the order of the steps", () => {
  const { rewards, smoothed } = lastRewards(steps(0, 1, null, 1).reverse());
  expect(rewards.map(({ step }) => step)).toEqual([1, 2, 4]);
  expect(smoothed.map((value) => Number(value.toFixed(3)))).toEqual([0, 0.4, 0.64]);
  expect(lastRewards(steps(null))).toEqual({ rewards: [], smoothed: [] });
});

test("the slope is that of the smoothed line, by least squares, and a gap has no point", () => {
  const run = { id: "r", created_at: 1000, steps: steps(0, 1, null, 1) };
  const slope = (weight: number) => learningOf([curveOf(run, "step", weight)], 1)[0]?.slope;
  // The points 0, 1 and 1 at 0, 1 and 3; smoothed by a half, 0, 0.5 and 0.75.
  expect(slope(0)).toBeCloseTo(0.2857, 4);
  expect(slope(0.5)).toBeCloseTo(0.2321, 4);
});

test("a point of another curve is no gap, and its value is the one before it", () => {
  const { at, values } = overlayOf([
    { id: "a", at: [1, 3], smoothed: [0.1, 0.3] },
    { id: "b", at: [2, 3], smoothed: [0.2, null] },
  ]);
  expect(at).toEqual([1, 2, 3]);
  expect(values).toEqual([
    [0.1, undefined, 0.3],
    [undefined, 0.2, null],
  ]);
  const series = values.map((of, index) => ({ name: `run ${index}`, values: of }));
  expect(pointText("step 2", series, 1)).toBe("step 2: run 0 0.1, run 1 0.2");
  expect(valueAt({ name: "b", values: values[1] ?? [] }, 2)).toBe("not measured");
});

test("rewards are drawn with the interval of their mean; those that are all 0 or 1 as a share, within 0 and 1", () => {
  const bins = [
    { from: 0, to: 1, n: 3 },
    { from: 1, to: 2, n: 5 },
  ];
  expect(isBinary({ whole: true, bins })).toBe(true);
  expect(isBinary({ whole: true, bins: [...bins, { from: 2, to: 3, n: 1 }] })).toBe(false);
  expect(isBinary({ whole: false, bins })).toBe(false);
  const all = "train/agg/all/reward";
  const values = { [`${all}/mean`]: 0.9, [`${all}/ci95_low`]: 0.7, [`${all}/ci95_high`]: 1.1, [`${all}/p10`]: 0 };
  const series = seriesOf([{ step: 1, at: 0, values }]);
  expect(rewardSeries(series, 0, true, undefined)).toEqual([
    { name: "share of the step", values: [0.9], low: [0.7], high: [1] },
  ]);
  expect(rewardSeries(series, 0, false, undefined)).toMatchObject([
    { name: "mean of the step", low: [0.7], high: [1.1] },
  ]);
  const old = seriesOf([{ step: 1, at: 0, values: { [`${all}/mean`]: 0.9, [`${all}/p10`]: 0, [`${all}/p90`]: 1 } }]);
  expect(rewardSeries(old, 0, false, undefined)).toMatchObject([{ low: [0], high: [1] }]);
  expect(rewardSeries(old, 0, true, undefined)).toEqual([{ name: "share of the step", values: [0.9] }]);
});

test("numbers have the true minus sign", () => {
  expect([numberText(-1.25), scoreText(-0.5), percentText(-0.31), dollarsText(-250_000)]).toEqual([
    "−1.25",
    "−0.500",
    "−31\u00a0%",
    "−$0.25",
  ]);
  expect([differenceText(0.125), differenceText(-0.125), differenceText(-0.0001), numberText(1e-8)]).toEqual([
    "+0.125",
    "−0.125",
    "0.000",
    "1e−8",
  ]);
});

test("texts are compared by word or by sentence, each with its own changed parts", () => {
  const changed = (parts: readonly { readonly text: string; readonly changed: boolean }[]) =>
    parts.filter((part) => part.changed).map(({ text }) => text.trim());
  const [old, fresh] = ["It is four. I am sure.", "It is five. I am sure."];
  const byWord = textDifference(old, fresh, "word");
  expect([changed(byWord.old), changed(byWord.fresh)]).toEqual([["four"], ["five"]]);
  const bySentence = textDifference(old, fresh, "sentence");
  expect([changed(bySentence.old), changed(bySentence.fresh)]).toEqual([["It is four."], ["It is five."]]);
  const phrase = textDifference("I do not know.", "It is answer 21.", "word");
  expect([changed(phrase.old), changed(phrase.fresh)]).toEqual([["I do not know"], ["It is answer 21"]]);
  expect(bySentence.fresh.map(({ text }) => text).join("")).toBe(fresh);
});

test("a state is shown as its changed lines with a few lines around them", () => {
  const state = (guesses: number) => ({ ...Object.fromEntries(Array.from("abcdefgh", (name) => [name, 1])), guesses });
  const lines = stateDifference(state(1), state(2));
  expect(lines.filter(({ kind }) => kind === "removed").map(({ text }) => text.trim())).toEqual(['"guesses": 1']);
  expect(lines.filter(({ kind }) => kind === "added").map(({ text }) => text.trim())).toEqual(['"guesses": 2']);
  expect(lines.find(({ kind }) => kind === "left out")?.text).toBe("6");
  expect(stateDifference(null, { a: 1 })).toEqual([{ kind: "same", text: '{\n  "a": 1\n}\n' }]);
});

test("the page names the members of which not all turns are read", () => {
  const long = { slot: 3, read: 5000, turns: 7200 };
  expect(unreadText([{ slot: 2, read: 9, turns: 9 }, long])).toBe(
    "Not all turns are read: of member 3 the first 5,000 of 7,200.",
  );
  expect(unreadText([{ slot: 2, read: 9, turns: 9 }])).toBeNull();
});
