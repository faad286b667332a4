/** Forks: rollouts that continue after a turn of another one, in a new run. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type { RunView } from "../../../src/contract/run.ts";
import { acceptedOnly, segmentLines } from "../hand-made.ts";
import { expectLaw, openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { registerTestEnvironments } from "../registered.ts";
import { GUESSES, questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
  registerTestEnvironments();
});

function fork(id: string, body: object, headers = {}): Promise<Response> {
  return platform.post(`/v1/rollouts/${id}/fork`, body, headers);
}

async function forked(id: string, body: object, headers = {}): Promise<RunView> {
  const response = await fork(id, body, headers);
  expect(response.status).toBe(202);
  return await response.json();
}

/** A game of guesses that was lost in its third turn, and has ended. */
async function lostGame(more: object = {}): Promise<RunView> {
  const wrong = { tool_calls: [{ name: "guess", arguments: { number: 900 } }] };
  return await platform.finish({
    environment: "guess-number",
    environment_args: { max: 1000, max_turns: 3 },
    model: script([wrong, wrong, wrong]),
    num_examples: 1,
    seed: 5,
    ...more,
  });
}

test("forks continue after the named turn: same task, turns and state, and only later turns are requested", async () => {
  const run = await lostGame();
  const source = await platform.rollout(rolloutAt(run.id));
  expect(source.turns.length).toBe(3);
  const other = { tool_calls: [{ name: "guess", arguments: { number: 1 } }] };
  const model = script(["unread", other, other]);
  const made = await forked(source.id, { turn: 0, model, rollouts: 2 });
  const forked_from = { rollout_id: source.id, turn: 0 };
  expect(made).toMatchObject({
    ...{ model, forked_from, num_examples: 1, rollouts_per_example: 2, seed: 5, dataset: null },
    ...{ environment: run.environment, environment_args: run.environment_args },
  });
  const ended = await platform.ended(made.id);
  expectLaw(ended.counts);
  expect(ended.counts).toMatchObject({ planned: 2, scored: 2 });
  for (const slot of [0, 1]) {
    const rollout = await platform.rollout(rolloutAt(made.id, 0, slot));
    expect(rollout).toMatchObject({ forked_from, task_key: source.task_key });
    // Unchanged, except for reward and advantage, which are the rollout's own.
    const { reward: _reward, advantage: _advantage, ...inherited } = { ...source.turns[0] };
    expect(rollout.turns[0]).toMatchObject(inherited);
    expect(rollout.turns.length).toBe(3);
    // The environment's reply to turn 0 is the one that was given then.
    expect(rollout.turns[1]?.prompt).toEqual(source.turns[1]?.prompt);
    // Two guesses were answered, as then, because the calls of a last turn are never run.
    const { secret, guesses } = source.state;
    expect(rollout.state).toMatchObject({ secret, guesses });
    const own = rollout.turns.slice(1).map((turn) => turn.usage?.prompt_tokens ?? 0);
    expect(rollout.usage.prompt_tokens).toBe(own.reduce((sum, count) => sum + count, 0));
  }
  // Two rollouts, two turns each: inherited turns are neither requested nor counted again.
  expect((await requestsOf(model)).length).toBe(4);
  expect(ended.report).toMatchObject({ turns: 4, calls: 4 });
  // The original run is unchanged.
  expect(await platform.run(run.id)).toEqual(run);
});

test("a rollout whose trajectory is in a segment is forked from there, and a fork can be forked too", async () => {
  const run = await lostGame();
  await segmentLines(platform, run.id);
  const first = await forked(rolloutAt(run.id), { turn: 0 });
  expect(first.model).toBe(run.model);
  await platform.ended(first.id);
  const second = await forked(rolloutAt(first.id), { turn: 1 });
  const ended = await platform.ended(second.id);
  expect(ended).toMatchObject({ status: "completed", report: { turns: 1, calls: 1 } });
  expect((await platform.rollout(rolloutAt(second.id))).turns.length).toBe(3);
});

test("a turn that nothing can follow cannot be forked, and the refusal says which turns can", async () => {
  const run = await lostGame();
  const id = rolloutAt(run.id);
  const last = await fork(id, { turn: 2 });
  expect(last.status).toBe(400);
  const { error } = await last.json<{ error: { message: string; param: string } }>();
  expect(error).toMatchObject({ param: "turn", message: expect.stringContaining("0 to 1") });
  const single = await platform.finish({
    environment: "gsm8k",
    dataset: questions(1),
    model: script(RIGHT),
  });
  expect((await fork(rolloutAt(single.id), { turn: 0 })).status).toBe(400);
  expect((await fork("ro_nobody", { turn: 0 })).status).toBe(404);
});

test("the same key forks once; with another body, or for another rollout, it is refused", async () => {
  const run = await lostGame({ rollouts_per_example: 2 });
  const [id, other] = [rolloutAt(run.id), rolloutAt(run.id, 0, 1)];
  const key = { "idempotency-key": `fork-${run.id}` };
  const once = await forked(id, { turn: 0 }, key);
  const again = await fork(id, { turn: 0 }, key);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(await again.json()).toMatchObject({ id: once.id });
  expect((await fork(id, { turn: 1 }, key)).status).toBe(422);
  expect((await fork(other, { turn: 0 }, key)).status).toBe(422);
  await platform.ended(once.id);
});

test("a rollout that is running, or that never began, cannot be forked", async () => {
  const hang = { fault: { kind: "hang" } } as const;
  const model = script([GUESSES[0] ?? "", hang]);
  const run = await platform.start({ environment: "guess-number", num_examples: 1, model });
  await requestsOf(model, 2);
  const going = await fork(rolloutAt(run.id), { turn: 0 });
  expect(going.status).toBe(409);
  expect(await going.json()).toMatchObject({ error: { code: "conflict" } });
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  await platform.ended(run.id);
  // Cancelled after one turn, so nothing can follow that turn.
  expect((await fork(rolloutAt(run.id), { turn: 0 })).status).toBe(400);
});

test("an environment with more than its state refuses forks", async () => {
  const twice = { tool_calls: [{ name: "look", arguments: {} }] };
  const request = { environment: "unforkable", model: script([twice, twice, "done"]) };
  const run = await platform.finish(request);
  expect((await platform.rollout(rolloutAt(run.id))).turns.length).toBe(3);
  const refused = await fork(rolloutAt(run.id), { turn: 0 });
  expect(refused.status).toBe(409);
  expect(await refused.json()).toMatchObject({ error: { code: "conflict" } });
});

test("a fork whose creation was interrupted before its object existed starts with the next read", async () => {
  const run = await lostGame();
  const made = await forked(rolloutAt(run.id), { turn: 0 });
  await platform.ended(made.id);
  const model = script(["unread", "again", "again"]);
  const row = await acceptedOnly(platform, made.id, { model });
  const ended = await platform.ended(row.id);
  expect(ended).toMatchObject({ forked_from: { turn: 0 }, counts: { scored: 1 } });
});

test("a fork may call another endpoint, but not a deleted one", async () => {
  const run = await lostGame();
  const name = `fork-${crypto.randomUUID().slice(0, 8)}`;
  const endpoint = { name, base_url: env.MODEL_URL, probe: false };
  expect((await platform.post("/v1/endpoints", endpoint)).status).toBe(201);
  const made = await forked(rolloutAt(run.id), { turn: 1, endpoint: name });
  expect(made.endpoint?.name).toBe(name);
  await platform.ended(made.id);
  const missing = await fork(rolloutAt(run.id), { turn: 1, endpoint: "nobody" });
  expect(missing.status).toBe(404);
});
