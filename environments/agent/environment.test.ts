import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import { loadEnvironment } from "./environment.ts";

test.each([
  [{ prompt: "Say hello." }],
  [{ question: "Say hello." }],
  [{ prompt: [{ role: "user", content: "Say hello." }], anything: { else: 1 } }],
])("the prompt of %j is its text", async (task) => {
  const { trajectory } = await runRollout(await loadEnvironment(), { task, model: scripted(["Hello."]) });
  expect(trajectory.prompt.map(({ content }) => content)).toEqual(["Say hello."]);
});

test("a row without a prompt makes a task without messages", async () => {
  const { trajectory } = await runRollout(await loadEnvironment(), { task: { file: "a.py" }, model: scripted(["Hi"]) });
  expect(trajectory.prompt).toEqual([]);
});
