import { dataset, InfraError, type Messages, MultiTurnEnv } from "rollcall";
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";

const rows = dataset(z.object({ question: z.string() }), "uploaded");
const task = { question: "q" };
const echo = { envResponse: () => "go on" };

test("R-loop-2: a library error in setupState ends the rollout as that error, without a model call", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    ...echo,
    setupState: () => {
      throw new InfraError("no sandbox");
    },
    rubric: { rewards: { one: () => 1 } },
  });
  const report = await runRollout(environment, { task, model: scripted([]) });
  expect(report).toMatchObject({ stop_condition: "has_error", turns: 0, completion: [] });
  expect(report.error).toMatchObject({ error: "InfraError", retryable: true });
});

test("R-loop-3: a time limit reached in setup ends the rollout without a call, and it is scored", async () => {
  let at = 0;
  const environment = new MultiTurnEnv({
    dataset: rows,
    ...echo,
    timeoutMs: 100,
    setupState: () => {
      at = 100;
      return {};
    },
    rubric: { rewards: { one: () => 1 } },
  });
  const options = { task, model: scripted([]), capabilities: { now: () => at } };
  const report = await runRollout(environment, options);
  expect(report).toMatchObject({ stop_condition: "timeout_reached", turns: 0, completion: [] });
  expect(report).toMatchObject({ reward: 1, error: null, is_truncated: false });
});

test("R-loop-4: a text as prompt and a text as reply are messages of role text", async () => {
  const environment = new MultiTurnEnv({
    dataset: dataset(z.object({ prompt: z.string() }), "uploaded"),
    ...echo,
    maxTurns: 2,
    rubric: {},
  });
  const model = scripted(["a", "b"]);
  const { trajectory } = await runRollout(environment, { task: { prompt: "p" }, model });
  expect(trajectory.prompt).toEqual([{ role: "text", content: "p" }]);
  expect(trajectory.completion[1]).toEqual({ role: "text", content: "go on" });
});

test("R-loop-5: an empty reply gives two assistant messages in a row; the second prompt has 2 messages", async () => {
  const prompts: Messages[] = [];
  const environment = new MultiTurnEnv({
    dataset: rows,
    envResponse: () => [],
    maxTurns: 2,
    rubric: {},
  });
  const report = await runRollout(environment, {
    task,
    model: ({ messages }) => {
      prompts.push(messages);
      return "a";
    },
  });
  expect(prompts[1]?.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(report.completion.map(({ role }) => role)).toEqual(["assistant", "assistant"]);
});

test("R-loop-11: the fields of a state and of a step", async () => {
  const keys: string[][] = [];
  const environment = new MultiTurnEnv({
    dataset: rows,
    setupState: () => ({ own: 1 }),
    envResponse: (_messages, state) => {
      const [step = {}] = state.trajectory;
      keys.push(Object.keys(state).sort(), Object.keys(step).sort());
      expect(state.task).toEqual(task);
      return "go on";
    },
    maxTurns: 2,
    rubric: {},
  });
  await runRollout(environment, { task, model: scripted(["a", "b"]) });
  expect(keys).toEqual([
    [
      ...["answer", "completion", "error", "final_env_response", "info", "is_truncated", "live"],
      ...["own", "prompt", "stop_condition", "task", "trajectory", "turn", "usage"],
    ],
    [
      ...["answered_at", "calls", "completion", "finish_reason", "index", "is_truncated"],
      ...["latency_ms", "model", "policy_version", "prompt", "response_id", "state_after"],
      ...["tokens", "usage"],
    ],
  ]);
});
