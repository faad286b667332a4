import {
  type CleanupOptions,
  dataset,
  EnvGroup,
  type LiveState,
  type Messages,
  MultiTurnEnv,
  SingleTurnEnv,
  type StopOptions,
  textOf,
} from "rollcall";
import { runRollout, scripted, tearDown } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { stopConditions } from "../../../src/core/environments/stops.ts";

const Task = z.object({ question: z.string() });
const rows = dataset(Task, "uploaded");
const task = { question: "q" };
const echo = { envResponse: () => "go on" };

test("a single turn is one call, and its environment is never asked for a reply", async () => {
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

test("a final reply ends the rollout without another call and is part of the completion", async () => {
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

test("a stop condition that is true from the start prevents every call", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    stops: { at_once: () => true },
    rubric: { rewards: { length: ({ completion }) => completion.length } },
  });
  const report = await runRollout(environment, { task, model: scripted([]) });
  expect(report).toMatchObject({ stop_condition: "at_once", turns: 0, completion: [], reward: 0 });
});

test("R-loop-3: a time limit of 0 ends the rollout before setup, and it is scored", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    timeoutMs: 0,
    rubric: { rewards: { one: () => 1 } },
  });
  const report = await runRollout(environment, { task, model: scripted([]) });
  expect(report).toMatchObject({ stop_condition: "timeout_reached", reward: 1, error: null });
});

test("R-loop-9: conditions are checked by priority, then by name", () => {
  const given = {
    late_stop: { when: () => false, priority: -1 },
    default_stop: () => false,
    early_stop: { when: () => false, priority: 1 },
    another_default: () => false,
  };
  const names = stopConditions({}, given).map((stop) => stop.name);
  expect(names.filter((name) => name in given)).toEqual(["early_stop", "another_default", "default_stop", "late_stop"]);
});

test("R-loop-7: the built-in conditions are in verifiers' order", () => {
  const environment = new MultiTurnEnv({ dataset: rows, ...echo, rubric: {} });
  expect(environment.stopConditions.map(({ name, priority }) => [name, priority])).toEqual([
    ["has_error", 100],
    ["has_final_env_response", 0],
    ["max_total_completion_tokens_reached", 0],
    ["max_turns_reached", 0],
    ["prompt_too_long", 0],
  ]);
});

test("null removes a built-in condition, except those after which the rollout cannot continue", () => {
  const without = new MultiTurnEnv({
    dataset: rows,
    ...echo,
    stops: { max_turns_reached: null },
    rubric: {},
  });
  expect(without.stopConditions.map((stop) => stop.name)).not.toContain("max_turns_reached");
  const build = (stops: Record<string, null>) => () => new MultiTurnEnv({ dataset: rows, ...echo, stops, rubric: {} });
  expect(build({ has_error: null })).toThrow(/stops.has_error cannot be changed/);
  expect(build({ max_turn_reached: null })).toThrow(/nothing of this name/);
});

test("an author's condition may replace a built-in one", async () => {
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

test("without envResponse the rollouts of an environment fail with what is missing", async () => {
  const environment = new MultiTurnEnv({ dataset: rows, rubric: {} });
  const report = await runRollout(environment, { task, model: scripted(["a"]) });
  expect(report.error?.message).toContain("MultiTurnEnv has no envResponse");
});

test("a subclass overrides hooks as methods, and may call the option through super", async () => {
  class Game extends MultiTurnEnv<z.infer<typeof Task>, { guesses: number }> {
    override setupState() {
      return { guesses: 0 };
    }
    override async envResponse(messages: Messages, state: LiveState<z.infer<typeof Task>, { guesses: number }>) {
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

test("R-loop-6: a prompt that a hook shortens loses no message after the task's prompt", async () => {
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

test("a model that is called more often than scripted fails its test", async () => {
  const environment = new MultiTurnEnv({ dataset: rows, ...echo, rubric: {} });
  await expect(runRollout(environment, { task, model: scripted(["a"]) })).rejects.toThrow(
    "the model was called 2 times, but 1 replies are scripted",
  );
});

test("a task that does not fit the dataset is refused before anything runs", async () => {
  const environment = new MultiTurnEnv({ dataset: rows, ...echo, rubric: {} });
  await expect(runRollout(environment, { task: {}, model: scripted([]) })).rejects.toThrow(/question is required/);
});

const counted = (completion_tokens: number) => ({
  content: "a",
  usage: { prompt_tokens: 5, completion_tokens },
});

test("a budget of completion tokens ends the rollout after the turn that reaches it, and cuts nothing", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    ...echo,
    maxTotalCompletionTokens: 10,
    rubric: {},
  });
  const model = scripted([counted(4), counted(6), counted(1)]);
  const report = await runRollout(environment, { task, model });
  expect(report).toMatchObject({
    turns: 2,
    stop_condition: "max_total_completion_tokens_reached",
    is_truncated: false,
    error: null,
  });
});

test("without counted tokens, or with a budget of 0, the budget is never reached", async () => {
  const options = { dataset: rows, ...echo, maxTurns: 2, rubric: {} };
  for (const [budget, reply] of [
    [1, "uncounted"],
    [0, counted(50)],
  ] as const) {
    const environment = new MultiTurnEnv({ ...options, maxTotalCompletionTokens: budget });
    const report = await runRollout(environment, { task, model: scripted([reply, reply]) });
    expect(report).toMatchObject({ turns: 2, stop_condition: "max_turns_reached" });
  }
});

test("an empty text as final reply adds no message", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    envResponse: (_messages, state) => {
      state.final_env_response = "";
      return "x";
    },
    rubric: {},
  });
  const report = await runRollout(environment, { task, model: scripted(["a"]) });
  expect(report).toMatchObject({
    stop_condition: "has_final_env_response",
    completion: [{ content: "a" }],
  });
});

test("R-loop-14: a subclass inherits its parent's entries, and can add, replace and remove them", async () => {
  const ran: string[] = [];
  const note = (name: string) => () => void ran.push(name);
  const isLong = ({ turn }: { readonly turn: number }) => turn === 2;
  class Parent extends MultiTurnEnv<z.infer<typeof Task>> {
    protected override stopEntries(): StopOptions<LiveState<z.infer<typeof Task>>> {
      return { ...super.stopEntries(), long: () => false, max_turns_reached: null };
    }
    protected override cleanupEntries(): CleanupOptions<LiveState<z.infer<typeof Task>>> {
      return { sweep: note("Parent sweeps"), wipe: note("Parent wipes") };
    }
    protected override teardownEntries(): CleanupOptions<void> {
      return { close: note("Parent closes"), unlock: { run: note("unlocked"), priority: 1 } };
    }
  }
  class Child extends Parent {
    protected override stopEntries() {
      return { ...super.stopEntries(), long: isLong };
    }
    protected override cleanupEntries() {
      return { ...super.cleanupEntries(), sweep: note("Child sweeps") };
    }
    protected override teardownEntries() {
      return { ...super.teardownEntries(), close: note("Child closes") };
    }
  }
  const environment = new Child({
    dataset: rows,
    ...echo,
    maxTurns: 1,
    cleanup: { wipe: null, air: { run: note("aired"), priority: -1 } },
    teardown: { again: note("instance") },
    rubric: { teardown: { forget: note("rubric forgets") } },
  });
  const report = await runRollout(environment, { task, model: scripted(["a", "b"]) });
  expect(report).toMatchObject({ turns: 2, stop_condition: "long" });
  expect(ran).toEqual(["Child sweeps", "aired"]);
  ran.length = 0;
  expect(await tearDown(environment)).toEqual([]);
  expect(ran).toEqual(["unlocked", "instance", "Child closes", "rubric forgets"]);
  expect(() => new Child({ dataset: rows, ...echo, cleanup: { gone: null }, rubric: {} })).toThrow(
    "cleanup.gone: nothing of this name can be removed",
  );
});

test("A3: every teardown handler runs, for each environment of a group, and the errors are returned", async () => {
  const ran: string[] = [];
  const failing = new SingleTurnEnv({
    dataset: rows,
    rubric: {
      teardown: {
        first: () => {
          throw new RangeError("stuck");
        },
        second: () => void ran.push("second"),
      },
    },
  });
  const other = new MultiTurnEnv({
    dataset: rows,
    ...echo,
    teardown: { close: async () => void ran.push("other") },
    rubric: {},
  });
  const faults = await tearDown(new EnvGroup({ failing, other }));
  expect(faults.map(({ message }) => message)).toEqual(["teardown first: stuck"]);
  expect(ran).toEqual(["second", "other"]);
});

test("a reply in parts reaches the model and the completion unchanged", async () => {
  const content = [
    { type: "text", text: "look" },
    { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0K" } },
  ] as const;
  const environment = new MultiTurnEnv({
    dataset: rows,
    envResponse: () => [{ role: "user", content }],
    maxTurns: 2,
    rubric: { metrics: { seen: ({ completion }) => textOf(completion[1]).length } },
  });
  const seen: Messages[] = [];
  const options = {
    task,
    model: ({ messages }: { readonly messages: Messages }) => {
      seen.push(messages);
      return "a";
    },
    restartAfterEachTurn: true,
  };
  const report = await runRollout(environment, options);
  expect(seen[1]?.at(-1)).toEqual({ role: "user", content });
  expect(report.completion[1]).toEqual({ role: "user", content });
  expect(report.metrics["seen"]).toBe(4);
  expect(report.trajectory.turns[1]?.prompt.append).toEqual([{ role: "user", content }]);
});

test("invalid sampling arguments are refused when the environment is built", () => {
  const sampling = { temperature: -1 };
  expect(() => new SingleTurnEnv({ dataset: rows, sampling, rubric: {} })).toThrow(z.ZodError);
});

test("R-rubric-4: without scoring every reward is 0, and no function runs", async () => {
  const environment = new SingleTurnEnv({
    dataset: rows,
    scoreRollouts: false,
    rubric: { rewards: { never: () => Number.NaN } },
  });
  const report = await runRollout(environment, { task, model: scripted(["a"]) });
  expect(report).toMatchObject({ reward: 0, metrics: {}, scoring_errors: [] });
});
