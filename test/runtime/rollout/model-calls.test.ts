/** Model calls that a queue consumer awaits: messages lost, doubled and late, and objects that go in between. */
import { abortAllDurableObjects, evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { callModel } from "../../../src/clients/inference.ts";
import type { ModelCallMessage, RunMessage } from "../../../src/runtime/contract/wire.ts";
import { Subrequests } from "../../../src/runtime/kit/subrequests.ts";
import { makeModelCall } from "../../../src/runtime/rollout/model-driver.ts";
import { RolloutObject } from "../../../src/runtime/rollout/object.ts";
import { deliver, LossyQueue } from "../hand-made.ts";
import { type Door, inside, openPlatform, requestsOf, rolloutAt } from "../platform.ts";
import { GUESSES, questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

/** The messages of one rollout, once there are so many or it has ended. */
async function heldOf(id: string, count: number): Promise<ModelCallMessage[]> {
  for (;;) {
    const messages = held.given.filter((body): body is ModelCallMessage => isCallOf(body, id));
    if (messages.length >= count) return messages;
    const standing = await platform.inRollout(id, (rollout) => rollout.ask());
    if (standing?.state === "answered") return messages;
    // Over a real socket: what the object waits for gets its turn.
    await requestsOf(id);
  }
}

function isCallOf(body: unknown, rolloutId: string): boolean {
  return typeof body === "object" && body !== null && Object(body).rollout_id === rolloutId;
}

const real = { driver: env.MODEL_DRIVER, queue: env.MODEL_CALLS };
/** Holds every message: the tests deliver them. */
const held = new LossyQueue(env.MODEL_CALLS);
let platform: Door;
beforeAll(async () => {
  platform = await openPlatform();
  env.MODEL_DRIVER = "queue";
  env.MODEL_CALLS = held;
});
afterAll(() => {
  env.MODEL_DRIVER = real.driver;
  env.MODEL_CALLS = real.queue;
});

/** A run of one rollout whose first call is a message that was sent and not delivered. */
async function awayRollout(model: string, request = {}) {
  const gsm8k = { environment: "gsm8k", dataset: questions(1) };
  const run = await platform.start({ ...gsm8k, ...request, model });
  const id = rolloutAt(run.id);
  const [message] = await heldOf(id, 1);
  if (message === undefined) throw new Error("no message");
  return { run, id, message };
}

const calls = (messages: readonly RunMessage[]) => deliver("model-calls", messages);

/** What the model says to the call, as a consumer that was given it would hear. */
async function answerTo(id: string, { turn, call }: ModelCallMessage) {
  const pending = await platform.inRollout(id, (rollout) =>
    rollout.pendingCall(turn, call, { id: crypto.randomUUID(), attempt: 1 }),
  );
  if (pending === null) throw new Error("nobody waits");
  const { signal } = new AbortController();
  const where = { base_url: env.MODEL_URL, api_key: null, signal };
  const outcome = await callModel({ ...pending, ...where });
  if (outcome.kind !== "answered") throw new Error(outcome.kind);
  return outcome;
}

/** Fires the alarm as if so many milliseconds had passed. */
function alarmAfter(id: string, ms: number): Promise<void> {
  return platform.inRollout(id, async (rollout) => {
    rollout.now = () => Date.now() + ms;
    await rollout.alarm();
  });
}

test("a call travels as ids alone, while its object has one alarm, at the end of the call's time", async () => {
  const limits = { call_timeout_s: 300 };
  const { id, message, run } = await awayRollout(script(RIGHT), { limits });
  expect(JSON.stringify(message).length).toBeLessThan(1000);
  expect(message).toMatchObject({ kind: "model_call", rollout_id: id, turn: 0, call: 1 });
  const standing = await platform.inRollout(id, (rollout) => rollout.ask());
  const alarm = await platform.inRollout(id, (_, { storage }) => storage.getAlarm());
  expect(alarm ?? 0).toBeGreaterThan(Date.now() + 250_000);
  expect(alarm ?? 0).toBeLessThanOrEqual(Date.now() + 300_000);
  expect(standing).toEqual({ state: "running", next_event_at: alarm });
  expect(await calls([message])).toEqual(["0"]);
  expect(await platform.ended(run.id)).toMatchObject({ counts: { scored: 1 } });
});

test("a message that comes twice makes one call", async () => {
  const model = script(RIGHT);
  const { run, id, message } = await awayRollout(model);
  expect(await calls([message, message])).toEqual(["0", "1"]);
  const ended = await platform.ended(run.id);
  expect(ended).toMatchObject({ counts: { scored: 1 }, report: { turns: 1, calls: 1 } });
  const asked = (await requestsOf(model)).map(({ idempotency_key }) => idempotency_key);
  expect(asked).toEqual([`${id}:0`]);
});

test("a message that comes again because its consumer died makes the call again, under the same key", async () => {
  const model = script(RIGHT);
  const { run, id, message } = await awayRollout(model);
  const { turn, call } = message;
  const asked = await platform.inRollout(id, (rollout) => rollout.pendingCall(turn, call, { id: "0", attempt: 1 }));
  expect(asked).not.toBeNull();
  // A copy of it finds the call taken, also after the object was evicted; the next try of the same message takes it over.
  await evictDurableObject(await platform.rolloutStub(id));
  await calls([message]);
  expect(await requestsOf(model)).toEqual([]);
  expect(await deliver("model-calls", [message], { attempts: 2 })).toEqual(["0"]);
  expect(await platform.ended(run.id)).toMatchObject({
    counts: { scored: 1 },
    report: { turns: 1, calls: 1 },
  });
  const keys = (await requestsOf(model)).map(({ idempotency_key }) => idempotency_key);
  expect(keys).toEqual([`${id}:0`]);
});

test("a lost message is found at the end of the call's time, and tried again within the same budget", async () => {
  const model = script(RIGHT);
  const limits = { call_timeout_s: 60, max_retries: 1 };
  const { run, id, message } = await awayRollout(model, { limits });
  await alarmAfter(id, 30_000);
  expect((await heldOf(id, 1)).length).toBe(1);
  await alarmAfter(id, 61_000);
  await alarmAfter(id, 70_000);
  const [, second] = await heldOf(id, 2);
  expect(second).toEqual({ ...message, call: 2 });
  // The first one turns up after all.
  expect(await calls([message])).toEqual(["0"]);
  expect(await requestsOf(model)).toEqual([]);
  await calls([second ?? message]);
  await alarmAfter(id, 71_000);
  const ended = await platform.ended(run.id);
  expect(ended).toMatchObject({ counts: { scored: 1 }, report: { calls: 2 } });
  expect((await platform.rollout(id)).failed_calls).toMatchObject([
    { call: 1, reason: "timeout", message: "the model did not answer within 60 s" },
  ]);
});

test("messages that are all lost end the rollout as a timeout", async () => {
  const limits = { call_timeout_s: 60, max_retries: 1 };
  const { run, id } = await awayRollout(script(RIGHT), { limits });
  for (const ms of [61_000, 70_000, 131_000]) await alarmAfter(id, ms);
  expect((await platform.ended(run.id)).counts.failed).toEqual({ timeout: 1 });
});

test("an answer to a call that was given up changes nothing; the one to its retry counts", async () => {
  const model = script(RIGHT);
  const { run, id, message } = await awayRollout(model, { limits: { call_timeout_s: 60 } });
  const late = await answerTo(id, message);
  for (const ms of [61_000, 70_000]) await alarmAfter(id, ms);
  const stored = await platform.inRollout(id, (rollout) => rollout.read());
  await platform.inRollout(id, (rollout) => rollout.modelAnswered(0, 1, late));
  expect(await platform.inRollout(id, (rollout) => rollout.read())).toEqual(stored);
  const [, second = message] = await heldOf(id, 2);
  await calls([second]);
  await alarmAfter(id, 71_000);
  expect(await platform.ended(run.id)).toMatchObject({ counts: { scored: 1 } });
});

test("an answer after the cancel changes nothing, and a call not yet made is not made", async () => {
  const model = script(RIGHT);
  const { run, id, message } = await awayRollout(model);
  const late = await answerTo(id, message);
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  const ended = await platform.ended(run.id);
  expect(ended.counts.cancelled).toEqual({ user: 1 });
  await platform.inRollout(id, (rollout) => rollout.modelAnswered(0, 1, late));
  expect(await calls([message])).toEqual(["0"]);
  expect((await requestsOf(model)).length).toBe(1);
  const { turns, usage } = await platform.rollout(id);
  expect([turns, usage.total_tokens]).toEqual([[], 0]);
  expect(await platform.run(run.id)).toEqual(ended);
});

test("a call goes on while its rollout does, and is hung up on once that is over: others get its place", async () => {
  const model = script([{ fault: { kind: "hang" } }]);
  const { run, message } = await awayRollout(model);
  const subrequests = new Subrequests();
  const making = makeModelCall(env, message, { id: "0", attempt: 1 }, subrequests, 1);
  await requestsOf(model, 1);
  // What to ask, the call, and some looks that found the rollout going on.
  await vi.waitFor(() => expect(subrequests.count).toBeGreaterThan(5));
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  await making;
  expect((await platform.ended(run.id)).counts.cancelled).toEqual({ user: 1 });
  expect((await requestsOf(model)).length).toBe(1);
});

test("an answer between the cancel and the rollout's end is a turn, and its usage is counted", async () => {
  const { run, id, message } = await awayRollout(script(RIGHT));
  const answer = await answerTo(id, message);
  await platform.inRollout(id, async (rollout, { storage }) => {
    // As if the alarm that ends it were slow to come.
    await Promise.all([rollout.cancel("user"), rollout.modelAnswered(0, 1, answer)]);
    await storage.setAlarm(Date.now());
  });
  expect((await platform.ended(run.id)).counts.cancelled).toEqual({ user: 1 });
  const { turns, usage } = await platform.rollout(id);
  expect(turns.length).toBe(1);
  expect(usage).toEqual(answer.response.usage);
});

test("an object that was evicted while its call was away takes the answer as if it had waited", async () => {
  const model = script(GUESSES);
  const guess = { environment: "guess-number", environment_args: { max: 3 }, num_examples: 1 };
  const { run, id } = await awayRollout(model, { ...guess, dataset: undefined, seed: 5 });
  for (let sent = 1; ; sent += 1) {
    const messages = await heldOf(id, sent);
    if (messages.length < sent) break;
    await evictDurableObject(await platform.rolloutStub(id));
    await calls(messages.slice(sent - 1));
  }
  const ended = await platform.ended(run.id);
  expect(ended).toMatchObject({ counts: { scored: 1 } });
  expect(ended.report.calls).toBe(ended.report.turns);
  expect((await requestsOf(model)).length).toBe(ended.report.turns);
});

/** Whose objects all go while the model is asked. */
class CutOff extends Subrequests {
  override async fetch<T>(work: () => Promise<T>): Promise<T> {
    const fetched = await super.fetch(work);
    await abortAllDurableObjects();
    return fetched;
  }
}

test("an answer that comes after its object went is handed to the one that came after it", async () => {
  const model = script(RIGHT);
  const { run, id, message } = await awayRollout(model);
  await makeModelCall(env, message, { id: "0", attempt: 1 }, new CutOff());
  expect(await platform.ended(run.id)).toMatchObject({
    counts: { scored: 1 },
    report: { turns: 1, calls: 1 },
  });
  const keys = (await requestsOf(model)).map(({ idempotency_key }) => idempotency_key);
  expect(keys).toEqual([`${id}:0`]);
});

test("a queue that refuses a message costs no try: it is sent again as it was", async () => {
  const model = script(RIGHT);
  const refuse = held.sendBatch.bind(held);
  let refused = 0;
  held.sendBatch = async (messages) => {
    if (refused === 1) return refuse(messages);
    refused = 1;
    throw new Error("the queue is down");
  };
  const { run, message } = await awayRollout(model);
  expect(message.call).toBe(1);
  await calls([message]);
  const ended = await platform.ended(run.id);
  expect(ended).toMatchObject({ counts: { scored: 1 }, report: { calls: 1 } });
});

test("an object nobody created waits for no call and writes nothing", async () => {
  const stub: DurableObjectStub = env.ROLLOUT.getByName(crypto.randomUUID());
  const of = { rollout_id: "ro_1", turn: 0, call: 1 };
  await inside(stub, RolloutObject, async (rollout, { storage }) => {
    expect(await rollout.pendingCall(of, { id: "message", attempt: 1 })).toBeNull();
    await rollout.modelAnswered(of, { kind: "prompt_too_long" });
    expect(storage.sql.exec("select name from sqlite_master where name = 'facts'").toArray()).toEqual([]);
  });
});
