import { beforeAll, expect, test } from "vitest";
import { expectLaw, openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { GUESSES, questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

const ALL_SCORED = { pending: 0, in_flight: 0, unscored: {}, failed: {}, cancelled: {} };

test("a run of a SingleTurnEnv scores every rollout of every example, with a mean over tasks", async () => {
  const run = await platform.finish({
    environment: "gsm8k",
    dataset: questions(3, ["hard"]),
    model: script(RIGHT, { hard: ["no idea"] }),
    rollouts_per_example: 2,
  });
  expect(run).toMatchObject({ status: "completed", error: null, status_reason: null });
  expect(run.counts).toEqual({ ...ALL_SCORED, planned: 6, dispatched: 6, scored: 6 });
  expect(run.report.reward).toMatchObject({ n_tasks: 3, n_rollouts: 6, n_error: 0 });
  expect(run.report.reward.mean).toBeCloseTo(2 / 3);
  expect(run.report).toMatchObject({ turns: 6, calls: 6 });
  expect(run.finished_at).not.toBeNull();
});

test("a run of a ToolEnv carries tool results from turn to turn", async () => {
  const model = script([
    { tool_calls: [{ name: "multiply", arguments: { a: 6, b: 7 } }] },
    { tool_calls: [{ name: "add", arguments: { a: 42, b: 6 } }] },
    "It is 48.",
  ]);
  const dataset = [{ question: "What is 6 * 7 + 6?", answer: "48" }];
  const run = await platform.finish({ environment: "calculator", dataset, model });
  const [row] = await platform.results(run.id);
  expect(row).toMatchObject({ outcome: "scored", turns: 3, stop_condition: "no_tools_called" });
  expect(row?.metrics).toMatchObject({ right: 1, brief: 1, add_calls: 1, multiply_calls: 1 });
  const spoken = row?.completion.map(({ role, content }) => `${role}: ${content ?? ""}`);
  expect(spoken).toEqual(["assistant: ", "tool: 42", "assistant: ", "tool: 48", "assistant: It is 48."]);
});

test("a run of a StatefulToolEnv keeps each rollout's own secret, and ends with the reply that finds it", async () => {
  const run = await platform.finish({
    environment: "guess-number",
    environment_args: { max: 3 },
    model: script(GUESSES),
    num_examples: 2,
    rollouts_per_example: 4,
  });
  expect(run.counts).toEqual({ ...ALL_SCORED, planned: 8, dispatched: 8, scored: 8 });
  const rows = await platform.results(run.id);
  const states = await Promise.all(rows.map(({ rollout_id }) => platform.rollout(rollout_id)));
  for (const { state, turns, usage, completion } of states) {
    const secret = turns.length - 1;
    const range = { low: secret, high: 3 };
    expect(state).toEqual({ secret, ...range, guesses: turns.length, found: true });
    expect(completion.at(-1)).toMatchObject({ role: "tool", content: "correct" });
    const prompts = turns.map((turn) => turn.usage?.prompt_tokens ?? 0);
    expect(usage.prompt_tokens).toBe(prompts.reduce((sum, count) => sum + count, 0));
    // Turn 0 appends the prompt; each later turn appends the previous answer and the tool's reply to it.
    expect(turns.map(({ prompt }) => prompt.keep)).toEqual(turns.map(({ index }) => 2 * index));
  }
  expect(run.report.turns).toBe(states.reduce((sum, { turns }) => sum + turns.length, 0));
  expect(run.report.stop_conditions).toEqual({ found: 8 });
});

test("the model is called once per turn, each time with its own idempotency key", async () => {
  const model = script(GUESSES);
  const options = { environment_args: { max: 2 }, num_examples: 1, rollouts_per_example: 3 };
  const run = await platform.finish({ environment: "guess-number", model, ...options });
  const seen = await requestsOf(model);
  expect(seen.length).toBe(run.report.turns);
  expect(new Set(seen.map(({ idempotency_key }) => idempotency_key)).size).toBe(seen.length);
});

test("concurrent rollouts never exceed max_concurrent, and all of them are played", async () => {
  const request = { environment: "gsm8k", dataset: questions(7), model: script(RIGHT) };
  const run = await platform.start({ ...request, max_concurrent: 2 });
  const events = await platform.events(run.id);
  const progress = events.filter(({ event }) => event === "run.progress");
  const { counts } = await platform.run(run.id);
  expect(counts).toEqual({ ...ALL_SCORED, planned: 7, dispatched: 7, scored: 7 });
  for (const { data } of progress) {
    const snapshot = data["counts"] as typeof counts;
    expectLaw(snapshot);
    expect(snapshot.pending).toBeGreaterThanOrEqual(0);
  }
});

test("a run with fewer scores than min_scored fails, and one with exactly as many does not", async () => {
  const words = Array.from({ length: 11 }, () => "hard");
  const refused = { fault: { kind: "status", status: 404 } } as const;
  const request = {
    environment: "gsm8k",
    dataset: questions(25, words),
    model: script(RIGHT, { hard: [refused] }),
  };
  // 14 of 25 is 0.56, and 0.56 × 25 is a little more than 14 in floating point.
  expect(await platform.finish({ ...request, min_scored: 0.56 })).toMatchObject({
    status: "completed",
    counts: { scored: 14, failed: { provider: 11 } },
  });
  expect(await platform.finish({ ...request, min_scored: 0.57 })).toMatchObject({
    status: "failed",
    error: { code: "too_few_scored" },
  });
});

test("the same seed gives the same tasks in the same order, another seed gives others", async () => {
  const prompts = async (seed: number) => {
    const model = script(["1"]);
    const run = await platform.finish({ environment: "calculator", model, seed, num_examples: 3 });
    const rows = await platform.results(run.id);
    return rows.toSorted((a, b) => a.group - b.group).map(({ prompt }) => prompt);
  };
  const [one, again, other] = await Promise.all([prompts(1), prompts(1), prompts(2)]);
  expect(again).toEqual(one);
  expect(other).not.toEqual(one);
});

test("every rollout draws its own random numbers, and the same ones if the run is repeated", async () => {
  const secrets = async (seed: number) => {
    const run = await platform.finish({
      environment: "guess-number",
      environment_args: { max: 1_000_000, max_turns: 1 },
      model: script(GUESSES),
      seed,
      num_examples: 2,
      rollouts_per_example: 2,
    });
    const rows = await platform.results(run.id);
    const rollouts = await Promise.all(rows.map(({ rollout_id }) => platform.rollout(rollout_id)));
    const placed = rollouts.toSorted((x, y) => x.group - y.group || x.slot - y.slot);
    return placed.map(({ state }) => state["secret"]);
  };
  const [one, again, other] = await Promise.all([secrets(1), secrets(1), secrets(2)]);
  expect(new Set(one).size).toBe(4);
  expect(again).toEqual(one);
  expect(other).not.toEqual(one);
});

const hang = { fault: { kind: "hang" } } as const;

async function cancel(id: string): Promise<void> {
  const response = await platform.post(`/v1/runs/${id}/cancel`, {});
  expect(response.status).toBe(200);
}

test("a cancel aborts the calls in flight, keeps what ended before, and dispatches nothing more", async () => {
  const model = script([hang], { done: RIGHT });
  const run = await platform.start({
    environment: "gsm8k",
    dataset: questions(12, ["done", "done"]),
    model,
    max_concurrent: 4,
  });
  // Two are answered at once, the next four hang.
  await requestsOf(model, 6);
  await cancel(run.id);
  const ended = await platform.ended(run.id);
  expect(ended).toMatchObject({ status: "cancelled", error: null });
  expectLaw(ended.counts);
  expect(ended.counts).toMatchObject({ pending: 6, scored: 2, cancelled: { user: 4 }, failed: {} });
  expect((await requestsOf(model)).length).toBe(6);
  const events = await platform.events(run.id);
  expect(events.at(-1)?.event).toBe("run.cancelled");
  expect(events.filter(({ event }) => event === "rollout.finished").length).toBe(6);
});

test("a rollout that waits for its next try gets the cancel at once", async () => {
  const headers = { "retry-after": "3600" };
  const model = script([{ fault: { kind: "status", status: 429, headers } }]);
  const run = await platform.start({ environment: "gsm8k", dataset: questions(1), model });
  await requestsOf(model, 1);
  await cancel(run.id);
  expect((await platform.ended(run.id)).counts.cancelled).toEqual({ user: 1 });
  expect((await requestsOf(model)).length).toBe(1);
});

test("a cancelled rollout keeps its finished turns, is not scored, and is read back as cancelled", async () => {
  const guess = { tool_calls: [{ name: "guess", arguments: { number: 0 } }] };
  const model = script([guess, hang]);
  const run = await platform.start({ environment: "guess-number", num_examples: 1, model });
  await requestsOf(model, 2);
  await cancel(run.id);
  await platform.ended(run.id);
  const [row] = await platform.results(run.id);
  expect(row).toMatchObject({ outcome: "cancelled", reason: "user", reward: null, turns: 1 });
  const rollout = await platform.rollout(row?.rollout_id ?? "");
  expect(rollout).toMatchObject({ status: "done", state: { guesses: 1 }, scores: [] });
});

test("cancelling again, or after the end, changes nothing", async () => {
  const options = { environment: "gsm8k", dataset: questions(2) };
  const run = await platform.finish({ ...options, model: script(RIGHT) });
  await cancel(run.id);
  await cancel(run.id);
  expect(await platform.run(run.id)).toMatchObject({ status: "completed", counts: { scored: 2 } });
  expect((await platform.events(run.id)).at(-1)?.event).toBe("run.completed");
});

test("a run cancelled before its rollouts were reached ends after their notifications failed", async () => {
  const options = { environment: "gsm8k", dataset: questions(20), max_concurrent: 20 };
  const run = await platform.start({ ...options, model: script(RIGHT) });
  await cancel(run.id);
  for (let tells = 1; tells <= 8; tells += 1) {
    await platform.inRun(run.id, async (object) => {
      object.now = () => Date.now() + tells * 10_000;
      await object.alarm();
    });
  }
  const { status, counts } = await platform.ended(run.id);
  expect({ status, in_flight: counts.in_flight }).toEqual({ status: "cancelled", in_flight: 0 });
  expectLaw(counts);
});
