import { textOf } from "rollcall";
import { runRollout, scripted, type TestModel } from "rollcall/testing";
import { expect, test } from "vitest";
import { rowAt } from "../../src/core/rollout/task.ts";
import { goldPolicy, loadEnvironment } from "./environment.ts";

function guessing(...numbers: number[]) {
  return { tool_calls: numbers.map((number) => ({ name: "guess", arguments: { number } })) };
}

async function play(model: TestModel, options: { seed?: number; restart?: boolean } = {}) {
  const environment = await loadEnvironment();
  const task = rowAt(environment.dataset, 0, 0);
  const { seed = 3, restart = false } = options;
  return runRollout(environment, { task, model, seed, restartAfterEachTurn: restart });
}

test("halving the range finds every secret within seven guesses with the full score", async () => {
  for (let seed = 0; seed < 20; seed += 1) {
    const report = await play(goldPolicy({ question: "", max: 100 }), { seed });
    expect(report).toMatchObject({ stop_condition: "found", reward: 1, error: null });
    expect(report.state).toMatchObject({ found: true });
    expect(report.completion.at(-1)?.content).toBe("correct");
    expect(report.metrics["guesses"]).toBeLessThanOrEqual(7);
    expect(report.turns).toBe(report.metrics["guesses"]);
  }
});

test("the secret survives a restart after every step, and nothing else changes either", async () => {
  expect(await play(goldPolicy({ question: "", max: 100 }), { restart: true })).toEqual(
    await play(goldPolicy({ question: "", max: 100 })),
  );
});

test("each rollout draws its own secret, within the range", async () => {
  const seeds = Array.from({ length: 30 }, (_, seed) => seed);
  const reports = await Promise.all(seeds.map((seed) => play(scripted(["pass"]), { seed })));
  const secrets = reports.map((report) => Number(report.state["secret"]));
  expect(new Set(secrets).size).toBeGreaterThan(10);
  expect(secrets.every((secret) => secret >= 1 && secret <= 100)).toBe(true);
});

test("the model sees neither the secret nor the argument that carries it", async () => {
  const { state } = await play(scripted(["pass"]));
  await play(({ messages, tools }) => {
    const properties = tools[0]?.function.parameters["properties"];
    expect(Object.keys(properties ?? {})).toEqual(["number"]);
    expect(JSON.stringify(messages)).not.toContain(String(state["secret"]));
    return "pass";
  });
});

test("a model that gains no information scores 0", async () => {
  const report = await play(scripted([guessing(0), "I give up."]));
  expect(report).toMatchObject({ reward: 0, stop_condition: "no_tools_called" });
  expect(report.metrics).toMatchObject({ found: 0, narrowed: 0, guesses: 1, guess_calls: 1 });
  expect(report.completion[1]?.content).toBe("higher, 1 to 100");
});

test("the tool returns the range that all guesses have left, and narrowing it scores", async () => {
  const environment = await loadEnvironment({ max: 16 });
  const task = rowAt(environment.dataset, 0, 0);
  const report = await runRollout(environment, {
    task,
    model: scripted([guessing(16, 0, 12, 4), "I give up."]),
    seed: 4,
  });
  expect(report.state).toMatchObject({ secret: 8, low: 5, high: 11 });
  expect(report.completion.filter(({ role }) => role === "tool").map(textOf)).toEqual([
    "lower, 1 to 15",
    "higher, 1 to 15",
    "lower, 1 to 11",
    "higher, 5 to 11",
  ]);
  expect(report.metrics["narrowed"]).toBeCloseTo(1 - Math.log2(7) / 4);
});

test("more guesses than halving needs cost nothing", async () => {
  const { state } = await play(scripted(["pass"]));
  const all = Array.from({ length: 13 }, () => 0);
  const report = await play(scripted([guessing(...all, Number(state["secret"]))]));
  expect(report).toMatchObject({ reward: 1, metrics: { found: 1, narrowed: 1, guesses: 14 } });
  expect(report.completion).toHaveLength(15);
});

test("a guess that is not a whole number, or that forges the game, does not count", async () => {
  const forged = { name: "guess", arguments: { number: 1.5, game: { secret: 1.5 } } };
  const report = await play(scripted([{ tool_calls: [forged] }, "pass"]));
  expect(report.completion[1]?.content).toContain("bad arguments for guess: number:");
  expect(report.metrics).toMatchObject({ found: 0, guesses: 0, guess_calls: 1 });
});

test("the arguments set the range and the number of turns", async () => {
  const environment = await loadEnvironment({ max: 2, max_turns: 1 });
  const task = rowAt(environment.dataset, 5, 0);
  expect(task).toMatchObject({ question: expect.stringContaining("from 1 to 2") });
  const report = await runRollout(environment, { task, model: scripted([guessing(1)]) });
  expect(report).toMatchObject({ stop_condition: "max_turns_reached", turns: 1 });
});
