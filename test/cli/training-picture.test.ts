import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { terminal } from "../../src/cli/terminal/terminal.ts";
import { displayWidth } from "../../src/cli/terminal/text.ts";
import { firstStep, TrainingDisplay, type TrainingPicture, trainingPicture } from "../../src/cli/train/picture.ts";
import { aTraining, aTrainingRun, STEPS } from "./a-training.ts";
import { Window } from "./a-window.ts";

const PICTURE: TrainingPicture = {
  run: aTrainingRun(),
  training: aTraining(),
  series: STEPS,
  pace: { seconds: 21.4, rolloutsPerSecond: 148.2, tokensPerSecond: 9120 },
  before: 0.305,
};

function drawn(columns: number, rows = 24, picture = PICTURE): string[] {
  return trainingPicture(picture, { columns, rows, colour: false });
}

test("a picture has the training's status, the curve, and the speed", () => {
  const lines = drawn(130);
  expect(lines[0]).toBe("calculator  step 12/40 · 22 s");
  expect(lines[1]).toContain("1.00 ┤");
  expect(lines.slice(-2)).toEqual([
    "reward 0.580 · this batch 0.500 · policy v11 · lag 1.3 (most 2) · 9,120 tokens/s · 148 rollouts/s",
    "trainer waiting for batches 4 % · not training 31 %",
  ]);
});

test("a picture has the latest reward of each eval by its name, where there is space", () => {
  const [first, ...later] = STEPS;
  if (first === undefined) throw new Error("there are no steps");
  const values = { "eval/held out/reward": 0.25, "eval/hard/reward": 0.125 };
  const series = [{ ...first, values: { ...first.values, ...values } }, ...later];
  const last = series.pop();
  if (last !== undefined) series.push({ ...last, values: { ...last.values, "eval/held out/reward": 0.5 } });
  const lines = drawn(130, 24, { ...PICTURE, series }).slice(-2);
  expect(lines[1]).toContain("eval held out 0.500 · eval hard 0.125");
  expect(drawn(60, 24, { ...PICTURE, series }).slice(-2)).toEqual(drawn(60).slice(-2));
});

test("a declared best reward is said once, and the axis reaches it", () => {
  const lines = drawn(130, 24, { ...PICTURE, run: aTrainingRun({ max_reward: 2 }) });
  expect(lines.at(-2)).toMatch(/^reward 0\.580 \(best possible 2\) · this batch 0\.500 · /);
  expect(lines[1]).toContain("2.00 ┤");
});

test("a narrow terminal gets fewer numbers, on two lines, and never a line too long", () => {
  expect(drawn(60).slice(-2)).toEqual([
    "reward 0.580 · policy v11 · lag 1.3 (most 2)",
    "9,120 tokens/s · trainer waiting for batches 4 %",
  ]);
  for (let columns = 1; columns < 140; columns += 1) {
    for (const rows of [3, 8, 24]) {
      const lines = drawn(columns, rows);
      expect(lines.length).toBeLessThanOrEqual(rows);
      for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
    }
  }
});

test("the largest lag is never less than the current one: a batch shipped after the run was read counts in both", () => {
  const [last] = STEPS.slice(-1);
  const late = {
    step: 13,
    at: 0,
    values: { ...last?.values, "off_policy/mean": 4, "off_policy/max": 5 },
  };
  const picture = { ...PICTURE, training: aTraining({ max_lag: 2 }), series: [...STEPS, late] };
  expect(drawn(130, 24, picture).at(-2)).toContain("lag 4.0 (most 5)");
});

test("a picture says why the run does not progress", () => {
  const status_reason = { state: "waiting_for_trainer", reason: "2 batches ahead" } as const;
  const lines = drawn(130, 24, { ...PICTURE, run: aTrainingRun({ status_reason }) });
  expect(lines.join("\n")).toContain("waiting_for_trainer: 2 batches ahead");
});

test("before the first step the picture has the status, and no number that was not measured", () => {
  const training = aTraining({ steps_trained: 0, trainer: null, policy_version: 0 });
  const pace = { seconds: 0, rolloutsPerSecond: null, tokensPerSecond: null };
  const lines = drawn(80, 24, { ...PICTURE, training, pace, series: [], before: null });
  expect([lines[0], lines.at(-1)]).toEqual(["calculator  step 0/40 · 0 s", "policy v0"]);
});

function display(isTTY: boolean) {
  const stderr = new Window(isTTY, 80);
  const around = { stdout: new Window(isTTY), stderr, env: { NO_COLOR: "1" }, on: () => undefined };
  let clock = 0;
  const shown = new TrainingDisplay(terminal(false, around), () => clock, 0.305);
  const show = (ms: number, steps_trained: number, scored: number) => {
    clock = ms;
    const training = aTraining({ steps_trained });
    const run = aTrainingRun({ counts: { ...aTrainingRun().counts, scored } });
    shown.show({ run, training, series: STEPS.slice(0, steps_trained) });
  };
  return { stderr, show };
}

test("without a terminal there is a plain line at every tenth of the steps", () => {
  const { stderr, show } = display(false);
  for (let step = 0; step <= 12; step += 1) show(1000 * step, step, 64 * step);
  const lines = stderr.taken().trimEnd().split("\n");
  expect(lines.map((line) => line.split(" · ")[0])).toEqual([
    "calculator  step 4/40",
    "calculator  step 8/40",
    "calculator  step 12/40",
  ]);
  expect(lines[1]).toBe(
    "calculator  step 8/40 · 8 s · reward 0.506 · this batch 0.580 · policy v11 · lag 1.3 (most 2) · 0.0 tokens/s · 64 rollouts/s · trainer waiting for batches 4 % · not training 31 %",
  );
});

test("on a terminal it is drawn in place, with the rates of the last seconds", () => {
  const { stderr, show } = display(true);
  show(0, 1, 0);
  show(2000, 2, 200);
  stderr.taken();
  show(4000, 3, 600);
  const redrawn = stripVTControlCharacters(stderr.taken());
  expect(redrawn).toMatch(/^calculator {2}step 3\/40[\s\S]*\n150 rollouts\/s/);
});

test("the first step shows the distance between the trainer's probabilities and the engine's", () => {
  expect(firstStep(STEPS)).toEqual({ ratio_max_abs_error: 3e-7, kl: 1e-8 });
  expect(firstStep([])).toEqual({ ratio_max_abs_error: null, kl: null });
});
