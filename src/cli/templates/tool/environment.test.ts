import { type Reply, runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import { loadEnvironment } from "./environment.ts";

const task = { question: "What do bread and tea cost together?", answer: "7" };
const prices: Reply = {
  tool_calls: ["bread", "tea"].map((item) => ({ name: "price", arguments: { item } })),
};

async function play(replies: Reply[], restartAfterEachTurn = false) {
  const environment = await loadEnvironment();
  return runRollout(environment, { task, model: scripted(replies), restartAfterEachTurn });
}

test("the right sum of the prices scores 1", async () => {
  const report = await play([prices, "7"]);
  expect(report).toMatchObject({ reward: 1, stop_condition: "no_tools_called", error: null });
  expect(report.metrics).toMatchObject({ price_calls: 2 });
});

test("another sum scores 0", async () => {
  expect(await play([prices, "8"])).toMatchObject({ reward: 0 });
});

test("surviving a restart after every step changes nothing", async () => {
  expect(await play([prices, "7"], true)).toEqual(await play([prices, "7"]));
});
