import { type Reply, runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import { goldPolicy, loadEnvironment } from "./environment.ts";

const task = { question: "The number is 1. Make it 10.", target: 10 };

async function play(replies: Reply[], restartAfterEachTurn = false) {
  const environment = await loadEnvironment();
  return runRollout(environment, { task, model: scripted(replies), restartAfterEachTurn });
}

test("the fewest steps reach the number and score 1", async () => {
  const report = await play(goldPolicy(task));
  expect(report).toMatchObject({ reward: 1, stop_condition: "no_tools_called", error: null });
  expect(report.state).toEqual({ value: 10, steps: 4 });
});

test("stopping short of it scores 0", async () => {
  expect(await play(["Done."])).toMatchObject({ reward: 0 });
});

test("the number survives a restart after every step", async () => {
  expect(await play(goldPolicy(task), true)).toEqual(await play(goldPolicy(task)));
});
