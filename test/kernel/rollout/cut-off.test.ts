import { abortAllDurableObjects } from "cloudflare:test";
import { beforeAll, expect, test, vi } from "vitest";
import { PROCESS_SCHEDULER } from "../../../src/kernel/kit/fair-scheduler.ts";
import { registerDesk } from "../desk.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script, type Turns } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  registerDesk();
  platform = await openPlatform();
});

const call = (name: string, args: object = {}, id = `call_${name}`) => ({
  tool_calls: [{ id, name, arguments: { ...args } }],
});
/** About 2 ms for each rollout. */
const STEPS_OF_RESUMING = 40_000;
/** Hangs at the first request under each key. */
const HANGS_ONCE: Turns = [{ fault: { kind: "hang" }, times: 1, reply: "heard" }];

async function cutOff(turns: Turns, errand: string) {
  const [service, paid, model] = [script(HANGS_ONCE), script(["heard"]), script(turns)];
  const environment_args = { service: { pay: paid, [errand]: service } };
  const run = await platform.start({
    environment: "desk",
    environment_args,
    model,
    num_examples: 1,
  });
  await requestsOf(service, 1);
  await abortAllDurableObjects();
  const ended = await platform.ended(run.id);
  const rollout = await platform.rollout(rolloutAt(run.id));
  const keys = (await requestsOf(service)).map(({ idempotency_key }) => idempotency_key);
  const [sampled, payments] = [await requestsOf(model), await requestsOf(paid)];
  return { ended, rollout, keys, sampled: sampled.length, payments: payments.length };
}

test("a tool interrupted by a kill runs again under its key, and its SQL is applied once", async () => {
  const turns = [call("note", { text: "second" }), "Done."];
  const { ended, rollout, keys, sampled } = await cutOff(turns, "note");
  expect(ended).toMatchObject({ status: "completed", counts: { scored: 1 } });
  const key = `${rollout.id}:0:call_note`;
  expect(keys).toEqual([key, key]);
  expect(rollout.state).toEqual({ notes: "first; second; second, told" });
  expect(rollout.turns[1]?.prompt.append).toMatchObject([{ content: '[{"rowid":3}]' }]);
  expect(sampled).toBe(2);
});

test("after a kill each rollout continues in a scheduling turn of its organisation; what is new needs none", async () => {
  const model = script(RIGHT, { hang: HANGS_ONCE });
  const spend = vi.spyOn(PROCESS_SCHEDULER, "spend");
  const { orgId } = platform.scope;
  const turns = () => spend.mock.calls.filter(([org, steps]) => org === orgId && steps === STEPS_OF_RESUMING).length;
  const run = await platform.start({ environment: "gsm8k", dataset: questions(4, ["hang", "hang", "hang"]), model });
  await requestsOf(model, 4);
  expect(turns()).toBe(0);
  await abortAllDurableObjects();
  await platform.ended(run.id);
  expect(turns()).toBeGreaterThanOrEqual(3);
  spend.mockRestore();
});

test("a setup interrupted by a kill runs again, and its tables are created once", async () => {
  const { ended, rollout, keys } = await cutOff(["Done."], "setup");
  expect(ended).toMatchObject({ status: "completed", counts: { scored: 1 } });
  expect(keys).toEqual(["setup", "setup"]);
  expect(rollout.state).toEqual({ notes: "first" });
});

test("an interrupted tool that must not run twice ends its rollout, whose error says that a retry may help", async () => {
  const { ended, rollout, keys } = await cutOff([call("pay"), "Done."], "pay");
  expect(ended.counts).toMatchObject({ scored: 0, failed: { tool_outcome_unknown: 1 } });
  expect(rollout.error).toMatchObject({
    error: "InfraError",
    message: "interrupted while running pay, which must not run twice",
    retryable: true,
  });
  expect(keys).toEqual([`${rollout.id}:0:call_pay`]);
  // Closing continues with the tables as they are.
  expect(rollout.state).toEqual({ notes: "first" });
});

test("after a kill before such a tool has begun it runs, once", async () => {
  const { ended, rollout, keys, payments } = await cutOff([call("pay"), "Done."], "stop");
  expect(ended).toMatchObject({ status: "completed", counts: { scored: 1, failed: {} } });
  expect(keys).toEqual(["asked", "asked"]);
  expect(payments).toBe(1);
  expect(rollout.turns.length).toBe(2);
});

test("a kill after such a tool's outcome is stored changes nothing", async () => {
  const hanging = { fault: { kind: "hang" }, times: 1, reply: "Done." } as const;
  const service = script(["heard"]);
  const model = script([call("pay"), hanging]);
  const environment_args = { service: { pay: service } };
  const run = await platform.start({
    environment: "desk",
    environment_args,
    model,
    num_examples: 1,
  });
  await requestsOf(model, 2);
  await abortAllDurableObjects();
  expect((await platform.ended(run.id)).counts).toMatchObject({ scored: 1, failed: {} });
  expect((await requestsOf(service)).length).toBe(1);
});
