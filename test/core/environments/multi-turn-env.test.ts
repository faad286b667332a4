import { dataset, type LiveState, type Messages, MultiTurnEnv, SingleTurnEnv } from "rollcall";
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { stopConditions } from "../../../src/core/environments/stops.ts";

const Task = z.object({ question: z.string() });
const rows = dataset(Task, "uploaded");
const task = { question: "q" };
const echo = { envResponse: () => "go on" };

test("a single turn is one call, and its environment is never asked to reply", async () => {
  const environment = new SingleTurnEnv({
    dataset: rows,
    systemPrompt: "be brief",
    rubric: { rewards: { said_hi: ({ completion }) => completion.at(-1)?.content === "hi" } },
  });
  const report = await runRollout(environment, { task, model: scripted(["hi"]) });
  expect(report).toMatchObject({
    reward: 1,
    metrics: { said_hi: 1, num_turns: 1 },
    stop_condition: "max_turns_reached",
    completion: [{ role: "assistant", content: "hi" }],
  });
});

test("a text as reply is a message of role text, after the whole history", async () => {
  const seen: Messages[] = [];
  const environment = new MultiTurnEnv({ dataset: rows, ...echo, maxTurns: 2, rubric: {} });
  await runRollout(environment, {
    task,
    model: ({ messages, turn }) => {
      seen.push(messages);
      return `a${turn}`;
    },
  });
  expect(seen[1]).toEqual([
    { role: "user", content: "q" },
    { role: "assistant", content: "a0" },
    { role: "text", content: "go on" },
  ]);
});

test("an empty reply gives two assistant messages in a row", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    envResponse: () => [],
    maxTurns: 2,
    rubric: {},
  });
  const report = await runRollout(environment, { task, model: scripted(["a", "b"]) });
  expect(report.completion.map((message) => message.content)).toEqual(["a", "b"]);
});

test("a final reply ends the rollout without another call and stands in the completion", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    envResponse: (_messages, state) => {
      state.final_env_response = "well done";
      return "never sent";
    },
    rubric: {},
  });
  const report = await runRollout(environment, { task, model: scripted(["a"]) });
  expect(report.stop_condition).toBe("has_final_env_response");
  expect(report.completion.map((message) => message.content)).toEqual(["a", "well done"]);
});

test("a stop condition true from the start makes no call", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    stops: { at_once: () => true },
    rubric: { rewards: { length: ({ completion }) => completion.length } },
  });
  const report = await runRollout(environment, { task, model: scripted([]) });
  expect(report).toMatchObject({ stop_condition: "at_once", turns: 0, completion: [], reward: 0 });
});

test("a time limit of 0 ends the rollout before setup, and it is scored", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    timeoutMs: 0,
    rubric: { rewards: { one: () => 1 } },
  });
  const report = await runRollout(environment, { task, model: scripted([]) });
  expect(report).toMatchObject({ stop_condition: "timeout_reached", reward: 1, error: null });
});

test("conditions are asked by priority, then by name", () => {
  const given = {
    late_stop: { when: () => false, priority: -1 },
    default_stop: () => false,
    early_stop: { when: () => false, priority: 1 },
    another_default: () => false,
  };
  const names = stopConditions([], given).map((stop) => stop.name);
  expect(names.filter((name) => name in given)).toEqual([
    "early_stop",
    "another_default",
    "default_stop",
    "late_stop",
  ]);
});

test("the built-in conditions stand in verifiers' order", () => {
  const environment = new MultiTurnEnv({ dataset: rows, ...echo, rubric: {} });
  expect(environment.stopConditions.map(({ name, priority }) => [name, priority])).toEqual([
    ["has_error", 100],
    ["has_final_env_response", 0],
    ["max_turns_reached", 0],
    ["prompt_too_long", 0],
  ]);
});

test("null takes a built-in condition away, but not one the rollout cannot go on after", () => {
  const without = new MultiTurnEnv({
    dataset: rows,
    ...echo,
    stops: { max_turns_reached: null },
    rubric: {},
  });
  expect(without.stopConditions.map((stop) => stop.name)).not.toContain("max_turns_reached");
  const build = (stops: Record<string, null>) => () =>
    new MultiTurnEnv({ dataset: rows, ...echo, stops, rubric: {} });
  expect(build({ has_error: null })).toThrow(/stops.has_error cannot be changed/);
  expect(build({ max_turn_reached: null })).toThrow(/no built-in has this name/);
});

test("a condition of the author's may take a built-in's place", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    ...echo,
    maxTurns: 1,
    stops: { max_turns_reached: (state) => state.turn === 3 },
    rubric: {},
  });
  const report = await runRollout(environment, { task, model: scripted(["a", "b", "c"]) });
  expect(report).toMatchObject({ turns: 3, stop_condition: "max_turns_reached" });
});

test("an unknown option is an error that names it", () => {
  const options = { dataset: rows, rubric: {}, maxTurn: 3 };
  expect(() => new MultiTurnEnv(options)).toThrow(/maxTurn\b/);
  expect(() => new SingleTurnEnv({ dataset: rows, rubric: {}, ...{ maxTurns: 3 } })).toThrow(
    /SingleTurnEnv .*maxTurns/,
  );
});

test("an environment without envResponse fails its rollouts with what is missing", async () => {
  const environment = new MultiTurnEnv({ dataset: rows, rubric: {} });
  const report = await runRollout(environment, { task, model: scripted(["a"]) });
  expect(report.error?.message).toContain("MultiTurnEnv has no envResponse");
});

test("a subclass overrides hooks as methods, and may call the option through super", async () => {
  class Game extends MultiTurnEnv<z.infer<typeof Task>, { guesses: number }> {
    override setupState() {
      return { guesses: 0 };
    }
    override async envResponse(
      messages: Messages,
      state: LiveState<z.infer<typeof Task>, { guesses: number }>,
    ) {
      state.guesses += 1;
      return `${await super.envResponse(messages, state)} ${state.guesses}`;
    }
  }
  const environment = new Game({
    dataset: rows,
    ...echo,
    stops: { done: (state) => state.guesses === 2 },
    rubric: { rewards: { guesses: ({ state }) => state.guesses } },
  });
  const report = await runRollout(environment, { task, model: scripted(["a", "b", "c"]) });
  expect(report).toMatchObject({ reward: 2, stop_condition: "done", turns: 3 });
  expect(report.completion.at(-2)?.content).toBe("go on 2");
});

test("a prompt that a hook shortens loses nothing that was said after the task's prompt", async () => {
  class Forgetful extends MultiTurnEnv<z.infer<typeof Task>> {
    override async getPromptMessages(state: LiveState<z.infer<typeof Task>>) {
      const all = await super.getPromptMessages(state);
      return state.turn < 2 || typeof all === "string" ? all : [...state.prompt, ...all.slice(-1)];
    }
  }
  const environment = new Forgetful({ dataset: rows, ...echo, maxTurns: 3, rubric: {} });
  const report = await runRollout(environment, { task, model: scripted(["a", "b", "c"]) });
  expect(report.completion.map((message) => message.content)).toEqual(["go on", "c"]);
});

test("calling the model more often than scripted fails the test that did it", async () => {
  const environment = new MultiTurnEnv({ dataset: rows, ...echo, rubric: {} });
  await expect(runRollout(environment, { task, model: scripted(["a"]) })).rejects.toThrow(
    "the model was called 2 times, but 1 replies are scripted",
  );
});

test("a task that does not fit the dataset is refused before anything runs", async () => {
  const environment = new MultiTurnEnv({ dataset: rows, ...echo, rubric: {} });
  await expect(runRollout(environment, { task: {}, model: scripted([]) })).rejects.toThrow(
    /question is required/,
  );
});
