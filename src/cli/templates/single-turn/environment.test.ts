import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import { loadEnvironment } from "./environment.ts";

const task = { question: 'How many times does "r" occur in "arrar"?', answer: "3" };

async function play(reply: string, restartAfterEachTurn = false) {
  const environment = await loadEnvironment();
  return runRollout(environment, { task, model: scripted([reply]), restartAfterEachTurn });
}

test("the right answer in its box scores 1", async () => {
  expect(await play("It is \\boxed{3}.")).toMatchObject({ reward: 1, error: null });
});

test.each(["\\boxed{2}", "I do not know.", ""])("%j scores 0", async (reply) => {
  expect(await play(reply)).toMatchObject({ reward: 0 });
});

test("surviving a restart after every step changes nothing", async () => {
  expect(await play("\\boxed{3}", true)).toEqual(await play("\\boxed{3}"));
});
