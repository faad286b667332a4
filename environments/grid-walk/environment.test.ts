import { textOf } from "rollcall";
import { type Reply, runRollout, scripted, type TestModel } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { rowAt } from "../../src/core/rollout/task.ts";
import { goldPolicy, loadEnvironment } from "./environment.ts";

const Point = z.object({ x: z.number(), y: z.number() });
const Row = z.object({ question: z.string(), start: Point, goal: Point });
const task = {
  question: "Walk from 1, 2 to 3, 4.",
  size: 4,
  start: { x: 1, y: 2 },
  goal: { x: 3, y: 4 },
};

function moving(...directions: string[]): Reply {
  return {
    tool_calls: directions.map((direction) => ({ name: "move", arguments: { direction } })),
  };
}

async function play(model: TestModel, restartAfterEachTurn = false) {
  const environment = await loadEnvironment();
  return runRollout(environment, { task, model, restartAfterEachTurn });
}

const there = [moving("right"), moving("up"), moving("up"), moving("right")];

test("a walker that arrives gets the full score, and the model is not called again", async () => {
  const report = await play(scripted(there));
  expect(report).toMatchObject({ reward: 1, stop_condition: "arrived", turns: 4, error: null });
  expect(report.state).toEqual({ x: 3, y: 4, moves: 4 });
  const said = report.completion.filter(({ role }) => role === "tool").map(textOf);
  expect(said).toEqual(["You are at 2, 2.", "You are at 2, 3.", "You are at 2, 4.", "You have arrived."]);
});

test("the validation's shortest path arrives", async () => {
  expect(await play(scripted(goldPolicy(task)))).toMatchObject({ reward: 1, turns: 4 });
});

test("the walker's place survives a restart after every step", async () => {
  expect(await play(scripted(there), true)).toEqual(await play(scripted(there)));
});

test("several steps may be taken in one turn, and steps after the arrival do not count", async () => {
  const report = await play(scripted([moving("up", "right", "up", "right", "left")]));
  expect(report).toMatchObject({ stop_condition: "arrived", reward: 1, turns: 1 });
  expect(report.metrics).toMatchObject({ moves: 4, move_calls: 5 });
});

test("a wall stops the step, which still counts", async () => {
  const report = await play(scripted([moving("left"), "I am lost."]));
  expect(report.completion[1]?.content).toBe("You are at 1, 2.");
  expect(report.metrics).toMatchObject({ arrived: 0, progress: 0, moves: 1 });
});

test("half of the way is half of the progress, and a step back is no less than none", async () => {
  expect(await play(scripted([moving("up", "right"), "Here."]))).toMatchObject({
    reward: 0.15,
    stop_condition: "no_tools_called",
    metrics: { arrived: 0, progress: 0.5 },
  });
  expect(await play(scripted([moving("down"), "Here."]))).toMatchObject({ reward: 0 });
});

test("an invalid direction, or a forged place, does not move the walker", async () => {
  const forged = {
    name: "move",
    arguments: { direction: "up", walk: { x: 3, y: 3 } },
  };
  const report = await play(scripted([moving("north"), { tool_calls: [forged] }, "Here."]));
  expect(report.completion[1]?.content).toContain("bad arguments for move: direction:");
  expect(report.completion[3]?.content).toBe("You are at 1, 3.");
});

test("the model does not see the argument that carries the walk", async () => {
  await play(({ tools }) => {
    const properties = tools[0]?.function.parameters["properties"];
    expect(Object.keys(properties ?? {})).toEqual(["direction"]);
    return "Here.";
  });
});

test.each([
  [{}, 4, 4],
  [{ size: 2, max_turns: 9 }, 2, 2],
  [{ size: 20, max_turns: 3 }, 20, 2],
  [{ size: 3, max_turns: 100 }, 3, 4],
])("with %j every goal is on the grid and within reach", async (args, size, reach) => {
  const { dataset } = await loadEnvironment(args);
  const distances = new Set<number>();
  for (let index = 0; index < 200; index += 1) {
    const row = rowAt(dataset, index, 7);
    expect(rowAt(dataset, index, 7)).toEqual(row);
    const { question, start, goal } = Row.parse(row);
    const ends = [start.x, start.y, goal.x, goal.y];
    expect(question).toBe(`Walk from ${start.x}, ${start.y} to ${goal.x}, ${goal.y}.`);
    expect(ends.every((at) => at >= 1 && at <= size)).toBe(true);
    distances.add(Math.abs(start.x - goal.x) + Math.abs(start.y - goal.y));
  }
  expect(Math.min(...distances)).toBe(2);
  expect(Math.max(...distances)).toBe(reach);
});
