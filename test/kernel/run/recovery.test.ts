import { abortAllDurableObjects, evictDurableObject } from "cloudflare:test";
import { beforeAll, expect, test } from "vitest";
import { expectLaw, openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { down, GUESSES, questions, RIGHT } from "../rows.ts";
import { script, type Turns } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

/** The same replies, but the first try of turn `at` hangs. */
function hangingAt(turns: Turns, at: number): Turns {
  return turns.map((reply, turn) =>
    turn === at && (typeof reply === "string" || !("fault" in reply))
      ? { fault: { kind: "hang" as const }, times: 1, reply }
      : reply,
  );
}

test("if a process dies with calls in flight the next one continues, and samples no answered turn again", async () => {
  const model = script(hangingAt(GUESSES, 1));
  const run = await platform.start({
    environment: "guess-number",
    environment_args: { max: 3 },
    model,
    num_examples: 4,
  });
  // Four first turns, none of them right, and four second ones that hang.
  await requestsOf(model, 8);
  await abortAllDurableObjects();
  const ended = await platform.ended(run.id);
  expect(ended).toMatchObject({ status: "completed", counts: { scored: 4, failed: {} } });
  // The calls in flight were sent again under the same keys, and no others.
  const again = [...(await keysByCount(model))].filter(([, count]) => count > 1);
  expect(again.map(([key, count]) => [key.split(":")[1], count])).toEqual([1, 2, 3, 4].map(() => ["1", 2]));
  expect(ended.report.calls).toBe((await requestsOf(model)).length);
  expect(ended.report.calls).toBe(ended.report.turns + 4);
  for (const { rollout_id } of await platform.results(run.id)) {
    const { state, turns } = await platform.rollout(rollout_id);
    const secret = turns.length - 1;
    const range = { low: secret, high: 3 };
    expect(state).toEqual({ secret, ...range, guesses: turns.length, found: true });
  }
});

test("a rollout evicted between two tries wakes by its alarm, and calls again under the same key", async () => {
  const failing = { fault: down, times: 1, reply: "\\boxed{4}" };
  const model = script([failing]);
  const run = await platform.start({ environment: "gsm8k", dataset: questions(1), model });
  await requestsOf(model, 1);
  await evictDurableObject(await platform.rolloutStub(rolloutAt(run.id)));
  expect((await platform.ended(run.id)).counts.scored).toBe(1);
  expect([...(await keysByCount(model)).values()]).toEqual([2]);
});

test("a run whose object was evicted again and again still dispatches all rollouts, once each", async () => {
  const model = script(RIGHT);
  const request = { environment: "gsm8k", dataset: questions(12), model, max_concurrent: 2 };
  const run = await platform.start(request);
  for (const seen of [1, 4, 8]) {
    await requestsOf(model, seen);
    // An object that is idle for ten seconds is evicted.
    await platform.inRun(run.id, () => undefined);
    await evictDurableObject(platform.runStub(run.id));
  }
  const ended = await platform.ended(run.id);
  expectLaw(ended.counts);
  expect(ended.counts).toMatchObject({ dispatched: 12, scored: 12 });
  expect((await requestsOf(model)).length).toBe(12);
});

test("a rollout in flight whose alarm was lost is woken when it is asked for its state", async () => {
  const waits = { kind: "status", status: 429, headers: { "retry-after": "3600" } } as const;
  const model = script([{ fault: waits, times: 1, reply: "\\boxed{4}" }]);
  const run = await platform.start({ environment: "gsm8k", dataset: questions(1), model });
  await requestsOf(model, 1);
  await evictDurableObject(await platform.rolloutStub(rolloutAt(run.id)));
  await platform.inRollout(rolloutAt(run.id), async (rollout, { storage }) => {
    rollout.now = () => Date.now() + 3_700_000;
    await storage.deleteAlarm();
    expect(await rollout.ask()).toMatchObject({ state: "running" });
    expect(await storage.getAlarm()).not.toBeNull();
    await storage.setAlarm(Date.now());
  });
  expect((await platform.ended(run.id)).counts.scored).toBe(1);
  expect((await requestsOf(model)).length).toBe(2);
});

async function keysByCount(model: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const { idempotency_key: key } of await requestsOf(model)) {
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}
