/** Rollouts that an agent plays: their calls, their ends, and how often they reach the model. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import * as z from "zod";
import { AgentsObject } from "../../src/agents/object.ts";
import type { LeasedRollout } from "../../src/agents/wire.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { dataset, defineEnvironment, MultiTurnEnv } from "../../src/core/entry.ts";
import { rolloutCharactersOf } from "../../src/kernel/kit/memory-variables.ts";
import { inside, openPlatform, type RunOptions, release, requestsOf, type TestApi } from "../kernel/platform.ts";
import { registerOnce } from "../kernel/registered.ts";
import { questions } from "../kernel/rows.ts";
import { script } from "../kernel/script.ts";
import { expire, heartbeat, leaseOne, type Played, played, queueOf } from "./agent.ts";

/** The runtime's text if the process of an object ended. */
const LOST = "Network connection lost.";

const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });

const request = (model: string, rows = 1, more: Partial<RunOptions> = {}): RunOptions => ({
  environment: "agent",
  agent: { name: "tester" },
  dataset: Array.from({ length: rows }, (_, row) => ({ question: `Question ${row}?` })),
  model,
  ...more,
});

async function firstOf(of: TestApi, id: string) {
  const [row] = await of.results(id);
  if (row === undefined) throw new Error("the run has no results");
  return { row, rollout: await of.rollout(row.rollout_id) };
}

test("an agent leases a rollout, calls its address twice and reports a reward: the rollout is scored with two turns", async () => {
  const of = await openPlatform();
  const model = script(["one", "two"]);
  const { id } = await of.start(request(model));
  const rollout = await leaseOne(of, "tester");
  expect(rollout).toMatchObject({ run_id: id, lease: 1, task: { question: "Question 0?" }, model });
  expect(rollout.prompt).toEqual([user("Question 0?")]);
  expect(await rollout.say(user("a"))).toBe("one");
  expect(await rollout.say(user("a"), assistant("one"), user("b"))).toBe("two");
  const finish = { rewards: { solved: 0.5, bonus: { score: 1, weight: 2 } }, metrics: { steps: 2 } };
  expect((await rollout.finish(finish)).status).toBe(200);
  expect(await of.ended(id)).toMatchObject({ status: "completed", counts: { scored: 1 } });
  expect((await rollout.finish(finish)).status).toBe(200);
  expect((await rollout.finish({ rewards: { solved: 1 } })).status).toBe(409);
  const { row, rollout: view } = await firstOf(of, id);
  expect(row).toMatchObject({ reward: 2.5, stop_condition: "agent_completed" });
  expect(view.turns).toHaveLength(2);
  expect(view.turns[1]?.prompt).toMatchObject({ keep: 2, append: [user("b")] });
  expect((await requestsOf(model)).map(({ messages }) => messages)).toEqual([1, 3]);
});

test("a worker that starts again replays its calls from storage, and only then reaches the model", async () => {
  const of = await openPlatform();
  const model = script(["one", "two", "three"]);
  const { id } = await of.start(request(model));
  const first = await leaseOne(of, "tester");
  const play = async (rollout: Played) => [
    await rollout.say(user("a")),
    await rollout.say(user("a")),
    await rollout.say(user("a"), assistant("one"), user("b")),
  ];
  expect(await play(first)).toEqual(["one", "one", "two"]);
  await giveBack(of, first);
  const second = await leaseOne(of, "tester");
  expect(second).toMatchObject({ rollout_id: first.rollout_id, lease: 2 });
  expect(await play(second)).toEqual(["one", "one", "two"]);
  expect(await requestsOf(model)).toHaveLength(3);
  expect(await second.say(user("a"))).toBe("one");
  await second.finish({ rewards: { solved: 1 } });
  expect(await of.ended(id)).toMatchObject({ counts: { scored: 1 } });
  expect((await firstOf(of, id)).rollout.turns).toHaveLength(4);
});

test("a worker that gives its leases back gets none in a request that still waits", async () => {
  const of = await openPlatform();
  await of.start(request(script(["one"])));
  const first = await leaseOne(of, "tester");
  const { rollout_id, lease } = first;
  const leased = await inside(queueOf(of), AgentsObject, async (queue) => {
    const waiting = queue.lease(of.scope, "tester", { worker: "worker", max: 1, wait_s: 30 });
    await queue.release(of.scope, { worker: "worker", leases: [{ rollout_id, lease }] });
    return await waiting;
  });
  expect(leased).toEqual([]);
  expect(await leaseOne(of, "tester", "another")).toMatchObject({ rollout_id: first.rollout_id, lease: 2 });
});

test("an agent with two conversations stores each message once, and each turn names the one that it continues", async () => {
  const of = await openPlatform();
  const model = script(["one", "two", "three"]);
  const { id } = await of.start(request(model));
  const rollout = await leaseOne(of, "tester");
  const main = [user("main"), assistant("one"), user("more"), assistant("two"), user("last")];
  const side = [user("side"), assistant("one"), user("and")];
  for (const messages of [main.slice(0, 1), side.slice(0, 1), main.slice(0, 3), side, main]) {
    await rollout.say(...messages);
  }
  await rollout.finish({ rewards: { solved: 1 } });
  await of.ended(id);
  expect((await firstOf(of, id)).rollout.turns.map(({ prompt }) => prompt)).toEqual([
    { keep: 0, append: [user("main")] },
    { keep: 0, append: [user("side")] },
    { after: 0, keep: 2, append: [user("more")] },
    { after: 1, keep: 2, append: [user("and")] },
    { after: 2, keep: 4, append: [user("last")] },
  ]);
  const page = await of.ask(`/v1/rollouts/${rollout.rollout_id}/turns?after=2&limit=2`);
  const { data } = await page.json<{ data: { index: number; prompt: object }[] }>();
  expect(data.map(({ index, prompt }) => ({ index, ...prompt }))).toMatchObject([
    { index: 3, after: 1, keep: 2, append: [{ content: [{ text: "and" }] }] },
    { index: 4, after: 2, keep: 4, append: [{ content: [{ text: "last" }] }] },
  ]);
  expect((await requestsOf(model)).map(({ messages }) => messages)).toEqual([1, 1, 3, 3, 5]);
});

test("a lease that its worker gave back does not count as lost", async () => {
  const of = await openPlatform();
  const { id } = await of.start(request(script(["one"]), 1, { agent: { name: "tester", max_leases: 1 } }));
  for (const lease of [1, 2]) {
    const rollout = await leaseOne(of, "tester");
    expect(rollout.lease).toBe(lease);
    await giveBack(of, rollout);
  }
  await (await leaseOne(of, "tester")).finish({ rewards: { solved: 1 } });
  expect(await of.ended(id)).toMatchObject({ counts: { scored: 1 } });
});

test("the key of a lost lease neither calls nor ends the rollout", async () => {
  const of = await openPlatform();
  await of.start(request(script(["one"])));
  const first = await leaseOne(of, "tester");
  await giveBack(of, first);
  const second = await leaseOne(of, "tester");
  const refused = await first.chat({ messages: [user("a")] });
  expect([refused.status, await refused.json()]).toMatchObject([409, { error: { code: "lease_lost" } }]);
  expect((await first.finish({ rewards: { solved: 1 } })).status).toBe(409);
  expect(await second.say(user("a"))).toBe("one");
  expect((await second.finish({ rewards: { solved: 1 } })).status).toBe(200);
});

test("a repeat that its client marks, or with the same Idempotency-Key, gets the stored answer", async () => {
  const of = await openPlatform();
  const model = script(["one", "two"]);
  await of.start(request(model));
  const rollout = await leaseOne(of, "tester");
  const body = { messages: [user("a")] };
  const text = async (headers: Record<string, string>) => {
    const reply = await (await rollout.chat(body, headers)).json<{ choices: { message: { content: string } }[] }>();
    return reply.choices[0]?.message.content;
  };
  expect(await text({ "idempotency-key": "k1" })).toBe("one");
  expect(await text({ "idempotency-key": "k1" })).toBe("one");
  expect(await text({ "x-stainless-retry-count": "1" })).toBe("one");
  expect(await requestsOf(model)).toHaveLength(1);
  expect(await text({ "idempotency-key": "k2" })).toBe("one");
  expect(await requestsOf(model)).toHaveLength(2);
  const other = await rollout.chat({ messages: [user("b")] }, { "idempotency-key": "k1" });
  expect([other.status, await other.json()]).toMatchObject([400, { error: { code: "idempotency_key_reused" } }]);
  await rollout.finish({ rewards: { solved: 1 } });
});

test("calls that are made at once are all answered, one after another", async () => {
  const of = await openPlatform();
  const { id } = await of.start(request(script(["one", "two", "three"])));
  const rollout = await leaseOne(of, "tester");
  const later = [user("a"), assistant("one"), user("b")];
  const said = await Promise.all([rollout.say(user("a")), rollout.say(...later), rollout.say(user("a"))]);
  expect(said).toEqual(["one", "two", "one"]);
  await rollout.finish({ rewards: { solved: 1 } });
  await of.ended(id);
  expect((await firstOf(of, id)).rollout.turns).toHaveLength(3);
});

test("the lease of a silent worker expires, another worker plays on, and after the last lease the rollout failed", async () => {
  const of = await openPlatform();
  const { id } = await of.start(request(script(["one"]), 1, { agent: { name: "tester", max_leases: 2 } }));
  const first = await leaseOne(of, "tester");
  expect((await heartbeat(of, first)).state).toBe("held");
  await expire(of);
  const second = await leaseOne(of, "tester");
  expect(second.lease).toBe(2);
  expect((await heartbeat(of, first)).state).toBe("lost");
  await expire(of);
  expect(await of.ended(id)).toMatchObject({ counts: { failed: { agent: 1 }, scored: 0 } });
  expect((await firstOf(of, id)).row).toMatchObject({ reward: null, error: { error: "AgentError" } });
  expect((await heartbeat(of, second)).state).toBe("ended");
});

test("a rollout that its agent reports as failed is classified and never scored", async () => {
  const of = await openPlatform();
  const { id } = await of.start(request(script(["one"]), 2));
  const [a, b] = [await leaseOne(of, "tester"), await leaseOne(of, "tester")];
  await a.finish({ error: { message: "no such file", error: "FileNotFoundError" }, rewards: { solved: 1 } });
  await b.finish({ error: { kind: "environment", message: "it refused" } });
  expect(await of.ended(id)).toMatchObject({ counts: { failed: { agent: 1, environment: 1 }, scored: 0 } });
  const rows = await of.results(id);
  expect(rows.map(({ reward }) => reward)).toEqual([null, null]);
  expect(rows.map(({ error }) => error?.error).toSorted()).toEqual(["AgentError", "FileNotFoundError"]);
});

test("the end of a rollout that is sent again gets the same answer, and another end is refused", async () => {
  const of = await openPlatform();
  const { id } = await of.start(request(script(["one"]), 2));
  const [a, b] = [await leaseOne(of, "tester"), await leaseOne(of, "tester")];
  const end = async (solved: number) => (await a.finish({ rewards: { solved } })).status;
  expect(await end(1)).toBe(200);
  await expect.poll(() => of.results(id)).toHaveLength(1);
  expect([await end(1), await end(0)]).toEqual([200, 409]);
  await b.finish({ rewards: { solved: 1 } });
  expect(await of.ended(id)).toMatchObject({ counts: { scored: 2 } });
});

test("scores or a state that could not be stored are refused by name, and the agent may send less", async () => {
  const of = await openPlatform();
  const { id } = await of.start(request(script(["one"])));
  const rollout = await leaseOne(of, "tester");
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`r${at}`, 1]));
  const rewards = Object.fromEntries(Object.entries(many).map(([name, score]) => [name, { score, weight: 1 }]));
  for (const [field, given] of Object.entries({
    rewards,
    metrics: many,
    state: { text: "a".repeat(LIMITS.stateBytes) },
  })) {
    const refused = await rollout.finish({ [field]: given });
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: { param: field } }]);
  }
  await rollout.finish({ rewards: { solved: 1 } });
  expect(await of.ended(id)).toMatchObject({ counts: { scored: 1 } });
});

test("scores that would leave the rollout unscored are refused by name, and the agent may send others", async () => {
  const of = await openPlatform();
  const agent = { name: "tester" };
  const { id } = await of.start({ environment: "gsm8k", agent, dataset: questions(1), model: script(["hm"]) });
  const rollout = await leaseOne(of, "tester");
  const refusal = async (finish: object) => {
    const refused = await rollout.finish(finish);
    const { error } = await refused.json<{ error: { message: string; param: string } }>();
    return [refused.status, error.param, error.message];
  };
  const taken = "the rubric of the environment has a score of this name: use another";
  expect(await refusal({ rewards: { correct_answer: 1 } })).toEqual([
    ...[400, "rewards.correct_answer", `rewards.correct_answer: ${taken}`],
  ]);
  expect(await refusal({ rewards: { a: 1 }, metrics: { a: 1 } })).toEqual([
    ...[400, "metrics.a", "metrics.a: is a reward too: use another name"],
  ]);
  const huge = { a: { score: 1e308, weight: 10 } };
  const message = "rewards: the sum of the scores times their weights is not a finite number";
  expect(await refusal({ rewards: huge })).toEqual([400, "rewards", message]);
  expect(await refusal({ rewards: { a: { score: "1", weight: 1 } } })).toEqual([
    ...[400, "rewards.a.score", "rewards.a.score: must be a number"],
  ]);
  // Workers of other libraries count turns, too.
  await rollout.finish({ answer: "\\boxed{4}", rewards: { style: 0.5 }, metrics: { num_turns: 9 } });
  expect(await of.ended(id)).toMatchObject({ counts: { scored: 1 } });
  const { scores, scoring_errors } = await of.rollout(rollout.rollout_id);
  expect(scores.filter(({ name }) => name === "num_turns")).toEqual([{ name: "num_turns", score: 0, weight: 0 }]);
  expect(scoring_errors).toEqual([]);
});

const holder = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new MultiTurnEnv({
      dataset: dataset(z.object({ question: z.string() }), "uploaded"),
      envResponse: () => "Go on.",
      setupState: () => ({ held: "a".repeat(LIMITS.stateBytes / 2) }),
      rubric: { rewards: { one: () => 1 } },
    }),
});

test("a state that is too large together with that of the environment is refused, and the agent may send less", async () => {
  const of = await openPlatform();
  const { args, needs, load } = holder;
  registerOnce({ id: "holder", version: "1.0.0", digest: "sha256:holder", args, needs, load });
  const state = (share: number) => ({ own: "a".repeat(Math.floor(LIMITS.stateBytes * share)) });
  const { id } = await of.start(request(script(["one"]), 1, { environment: "holder" }));
  const rollout = await leaseOne(of, "tester");
  const refused = await rollout.finish({ state: state(0.6), rewards: { solved: 1 } });
  expect([refused.status, await refused.json()]).toMatchObject([400, { error: { param: "state" } }]);
  await rollout.finish({ state: state(0.3), rewards: { solved: 1 } });
  expect(await of.ended(id)).toMatchObject({ counts: { scored: 1 } });
});

test("a body with too many values gets advice about datasets only if it has rows", async () => {
  const of = await openPlatform();
  const values = Array.from({ length: LIMITS.valuesPerRequest }, () => 1);
  const message = async (body: object) => {
    const { error } = await (await of.post("/v1/agents/tester/lease", body)).json<{ error: { message: string } }>();
    return error.message;
  };
  const text = `the body has more than ${LIMITS.valuesPerRequest} JSON values, the maximum`;
  expect(await message({ worker: values })).toBe(text);
  expect(await message({ dataset: values })).toBe(`${text}: upload rows as a dataset`);
});

test("a rollout whose reward is null, or without any reward, is unscored", async () => {
  const of = await openPlatform();
  const { id } = await of.start(request(script(["one"]), 2));
  const [a, b] = [await leaseOne(of, "tester"), await leaseOne(of, "tester")];
  await a.finish({ rewards: { solved: null, other: 1 } });
  await b.finish({ metrics: { steps: 1 } });
  expect(await of.ended(id)).toMatchObject({ counts: { unscored: { scorer: 2 }, scored: 0 } });
  for (const { reward } of await of.results(id)) expect(reward).toBeNull();
});

test("a rubric scores what an agent did, its answer and its state, and reported rewards are added", async () => {
  const of = await openPlatform();
  const agent = { name: "tester" };
  const { id } = await of.start({ environment: "gsm8k", agent, dataset: questions(2), model: script(["hm"]) });
  const [a, b] = [await leaseOne(of, "tester"), await leaseOne(of, "tester")];
  await a.say(user("a"));
  await a.finish({ answer: "\\boxed{4}" });
  await b.finish({ answer: "\\boxed{4}", rewards: { style: 0.5 } });
  expect(await of.ended(id)).toMatchObject({ counts: { scored: 2 } });
  const rows = await of.results(id);
  expect(rows.map(({ reward }) => reward).toSorted()).toEqual([1, 1.5]);
});

test("after its last allowed call an agent is refused further ones, and the rollout is truncated", async () => {
  const of = await openPlatform();
  const { id } = await of.start(request(script(["one", "two"]), 1, { agent: { name: "tester", max_turns: 1 } }));
  const rollout = await leaseOne(of, "tester");
  await rollout.say(user("a"));
  const refused = await rollout.chat({ messages: [user("b")] });
  expect([refused.status, await refused.json()]).toMatchObject([409, { error: { code: "max_turns_reached" } }]);
  await rollout.finish({ rewards: { solved: 0 } });
  await of.ended(id);
  expect((await firstOf(of, id)).row).toMatchObject({
    stop_condition: "max_turns_reached",
    is_truncated: true,
    reward: 0,
  });
});

test("an agent is refused a call that does not fit into its rollout, and its rewards count", async () => {
  const of = await openPlatform();
  const { id } = await of.start(request(script(["one", "two", "three"])));
  const rollout = await leaseOne(of, "tester");
  const half = (word: string) => user(word.repeat(rolloutCharactersOf(env) / 2 - 10_000));
  expect(await rollout.say(half("a"))).toBe("one");
  expect(await rollout.say(half("b"))).toBe("one");
  const refused = await rollout.chat({ messages: [half("c")] });
  expect([refused.status, await refused.json()]).toMatchObject([409, { error: { code: "max_size_reached" } }]);
  expect(await rollout.say(user("short"))).toBe("one");
  const answer = "a".repeat(LIMITS.requestBodyBytes - 1000);
  expect((await rollout.finish({ answer, rewards: { solved: 1 } })).status).toBe(200);
  expect(await of.ended(id)).toMatchObject({ counts: { scored: 1 } });
  const { row, rollout: view } = await firstOf(of, id);
  expect(row).toMatchObject({ stop_condition: "max_size_reached", is_truncated: true, reward: 1 });
  expect(view.turns).toHaveLength(3);
});

test("a cancelled run refuses the calls of its agents and tells their workers", async () => {
  const of = await openPlatform();
  const { id } = await of.start(request(script(["one"])));
  const rollout = await leaseOne(of, "tester");
  expect((await of.post(`/v1/runs/${id}/cancel`, {})).status).toBe(200);
  await of.ended(id);
  expect((await rollout.chat({ messages: [user("a")] })).status).toBe(409);
  expect((await rollout.finish({ rewards: { solved: 1 } })).status).toBe(409);
  await expect.poll(async () => (await heartbeat(of, rollout)).state).toBe("ended");
});

test("a key opens its own rollout only", async () => {
  const of = await openPlatform();
  await of.start(request(script(["one"]), 2));
  const [a, b] = [await leaseOne(of, "tester"), await leaseOne(of, "tester")];
  const path = `/model/${b.rollout_id}/v1/chat/completions`;
  const body = { model: "any", messages: [user("a")] };
  expect((await a.send(path, body)).status).toBe(401);
  expect((await a.send(path, body, { authorization: `Bearer ${b.key.slice(0, -1)}x` })).status).toBe(401);
  expect((await a.send(`/v1/rollouts/${b.rollout_id}/finish`, {})).status).toBe(401);
  expect((await of.ask("/v1/runs", { headers: { authorization: `Bearer ${a.key}` } })).status).toBe(401);
});

test("an agent whose prompt is too long may shorten it and go on", async () => {
  const of = await openPlatform();
  const body = { error: { message: "maximum context length is 8 tokens", code: "context_length_exceeded" } };
  const { id } = await of.start(
    request(script([{ fault: { kind: "status", status: 400, body }, times: 1, reply: "one" }])),
  );
  const rollout = await leaseOne(of, "tester");
  const refused = await rollout.chat({ messages: [user("long")] });
  expect([refused.status, await refused.json()]).toMatchObject([400, { error: { code: "context_length_exceeded" } }]);
  expect((await rollout.chat({ messages: [user("short")] })).status).toBe(400);
  expect(await rollout.say(user("short"))).toBe("one");
  await rollout.finish({ rewards: { solved: 1 } });
  expect(await of.ended(id)).toMatchObject({ counts: { scored: 1 } });
});

test("a model that fails ends the rollout as the provider's failure, and its agent is told", async () => {
  const of = await openPlatform();
  const limits = { max_retries: 0 };
  const { id } = await of.start(request(script([{ fault: { kind: "status", status: 500 } }]), 1, { limits }));
  const rollout = await leaseOne(of, "tester");
  expect((await rollout.chat({ messages: [user("a")] })).status).toBe(409);
  expect(await of.ended(id)).toMatchObject({ counts: { failed: { provider: 1 } } });
});

test("a call whose object is killed meanwhile is answered, and the model gets it with one idempotency key", async () => {
  const of = await openPlatform();
  const model = script(["one"], {}, { held: true });
  const { id } = await of.start(request(model));
  const rollout = await leaseOne(of, "tester");
  const said = rollout.say(user("a"));
  const [sent] = await requestsOf(model, 1);
  await expect(of.inRollout(rollout.rollout_id, (_, state) => state.abort(LOST))).rejects.toThrow();
  await requestsOf(model, 2);
  for (const _ of [1, 2]) await release(String(sent?.idempotency_key));
  expect(await said).toBe("one");
  await rollout.finish({ rewards: { solved: 1 } });
  await of.ended(id);
  expect(new Set((await requestsOf(model)).map(({ idempotency_key }) => idempotency_key)).size).toBe(1);
  expect((await firstOf(of, id)).rollout.turns).toHaveLength(1);
});

test("a rollout that no worker leases in time ends as failed", async () => {
  const of = await openPlatform();
  const agent = { name: "nobody", queue_timeout_s: 1 };
  const { id } = await of.start(request(script(["one"]), 1, { agent }));
  expect(await of.ended(id)).toMatchObject({ counts: { failed: { agent: 1 } } });
});

test("a webhook is told when rollouts wait and no worker leases them", async () => {
  const of = await openPlatform();
  const reply = await of.post("/v1/webhook-endpoints", { url: `${env.MODEL_URL}/hook`, events: ["agent.waiting"] });
  const { id: webhook_id } = await reply.json<{ id: string }>();
  await of.start(request(script(["one"]), 2));
  const log = async () => {
    const { data } = await (await of.ask(`/v1/webhook-endpoints/${webhook_id}/deliveries`)).json<{ data: unknown[] }>();
    return data;
  };
  await expect.poll(log).toMatchObject([{ type: "agent.waiting" }]);
  const stub = env.AGENTS.getByName(`org/${of.scope.orgId}/${of.scope.projectId}/agents`);
  await inside(stub, AgentsObject, (queue) => queue.alarm());
  expect(await log()).toHaveLength(1);
});

test("a program begins one rollout and plays it, and a repeat of its request gets the same one with another key", async () => {
  const of = await openPlatform();
  const model = script(["one"]);
  const body = { row: { question: "?" }, model, endpoint: { base_url: env.MODEL_URL } };
  const create = async () => {
    const response = await of.post("/v1/rollouts", body, { "idempotency-key": "mine" });
    expect(response.status, await response.clone().text()).toBe(201);
    return await response.json<{ run_id: string; rollout: LeasedRollout }>();
  };
  const first = await create();
  const again = await create();
  expect(again.rollout).toMatchObject({ rollout_id: first.rollout.rollout_id, lease: 2 });
  const rollout = played(again.rollout);
  expect((await played(first.rollout).chat({ messages: [user("a")] })).status).toBe(409);
  expect(await rollout.say(user("a"))).toBe("one");
  await rollout.finish({ rewards: { solved: 1 } });
  expect(await of.ended(first.run_id)).toMatchObject({ counts: { scored: 1 } });
});

async function giveBack(of: TestApi, { rollout_id, lease }: Played): Promise<void> {
  const response = await of.post("/v1/agents/tester/release", { worker: "worker", leases: [{ rollout_id, lease }] });
  expect(response.status, await response.clone().text()).toBe(200);
}
