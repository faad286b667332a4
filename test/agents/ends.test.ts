/** The end of an agent's rollout when it is cancelled or the platform is killed at the same time. */
import { afterEach, expect, test, vi } from "vitest";
import type { AgentFinish } from "../../src/kernel/messages/agent-wire.ts";
import { RolloutObject } from "../../src/kernel/rollout/object.ts";
import { RunObject } from "../../src/kernel/run/object.ts";
import { isOf, openPlatform, release, requestsOf } from "../kernel/platform.ts";
import { script } from "../kernel/script.ts";
import { capped, leaseOne, outcomes, type Played } from "./agent.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** The runtime's text if the process of an object ended. */
const LOST = "Network connection lost.";
const user = (content: string) => ({ role: "user", content });
const CAP = 5000;
/** A prompt that does not fit into the cap of these runs. */
const LARGE = { messages: [user("a".repeat(9000))] };
const SOLVED = { rewards: { solved: 1 } };
/** The same, as its object gets it. */
const END: AgentFinish = {
  ...{ answer: null, state: {}, stop_condition: null, is_truncated: false, error: null },
  reported: { rewards: { solved: { score: 1, weight: 1 } }, metrics: {} },
};

async function answerTo(finish: Promise<Response>) {
  const response = await finish;
  const body = await response.json<{ error?: { code: string; message: string } }>();
  return [response.status, body.error?.message];
}

const budget = ({ rollout_id }: Played) => [409, `${rollout_id} has ended: cancelled: budget`];

test("an agent that ends its rollout while a call waits for money is scored with what it reported", async () => {
  const of = await openPlatform();
  const model = script(["one"], {}, { held: true });
  const { id } = await of.start(capped(model, 2, CAP));
  const [first, second] = [await leaseOne(of, "tester"), await leaseOne(of, "tester", "other")];
  const said = second.say(user("a"));
  const [sent] = await requestsOf(model, 1);
  const waiting = first.chat(LARGE);
  await expect.poll(async () => (await of.run(id)).status_reason?.state).toBe("over_budget");
  expect(await answerTo(first.finish(SOLVED))).toEqual([200, undefined]);
  expect((await waiting).status).toBe(409);
  await release(String(sent?.idempotency_key));
  expect(await said).toBe("one");
  await second.finish(SOLVED);
  expect(await of.ended(id)).toMatchObject({ counts: { scored: 2, cancelled: {} }, report: { calls: 1 } });
});

for (const [status, name] of [
  [400, "fails for good"],
  [500, "may be tried again"],
] as const) {
  test(`an agent that ends its rollout during a call that ${name} is scored with what it reported`, async () => {
    const of = await openPlatform();
    const fault = { kind: "status", status } as const;
    const model = script(["one", { fault }], {}, { held: true });
    const { id } = await of.start(capped(model, 1, CAP));
    const rollout = await leaseOne(of, "tester");
    const said = rollout.say(user("a"));
    const [first] = await requestsOf(model, 1);
    await release(String(first?.idempotency_key));
    expect(await said).toBe("one");
    const failing = rollout.chat({ messages: [user("a"), { role: "assistant", content: "one" }, user("b")] });
    const [, second] = await requestsOf(model, 2);
    expect(await answerTo(rollout.finish(SOLVED))).toEqual([200, undefined]);
    await release(String(second?.idempotency_key));
    expect(await answerTo(failing)).toEqual([409, "the rollout was ended before the call was answered"]);
    expect(await of.ended(id)).toMatchObject({ counts: { scored: 1, failed: {} }, report: { calls: 2 } });
    expect(await outcomes(of, id)).toEqual({ [rollout.rollout_id]: 1 });
  });
}

test("an agent that ends its rollout after the cap did gets a conflict that names the outcome", async () => {
  const of = await openPlatform();
  const { id } = await of.start(capped(script(["one"]), 1, CAP));
  const rollout = await leaseOne(of, "tester");
  expect((await rollout.chat(LARGE)).status).toBe(409);
  for (const _ of [1, 2]) expect(await answerTo(rollout.finish(SOLVED))).toEqual(budget(rollout));
  await of.ended(id);
  expect(await outcomes(of, id)).toEqual({ [rollout.rollout_id]: "budget" });
});

test("an end that the agent reports before a cancel is written counts, and a later one does not", async () => {
  const of = await openPlatform();
  const { id } = await of.start(capped(script(["one"]), 3, CAP));
  const [first, second, third] = [
    await leaseOne(of, "tester"),
    await leaseOne(of, "tester"),
    await leaseOne(of, "tester"),
  ];
  await of.inRollout(first.rollout_id, async (one) => {
    await one.object.finishForAgent(first.rollout_id, first.lease, ending(1));
    await one.cancel("user");
  });
  await of.inRollout(second.rollout_id, async (one) => {
    await one.cancel("user");
    await expect.poll(() => one.read()?.phase).toBe("done");
    const reply = await one.object.finishForAgent(second.rollout_id, second.lease, ending(1));
    expect(reply).toEqual({ over: "cancelled: user" });
  });
  await of.inRollout(third.rollout_id, async (one) => {
    const finish = () => one.object.finishForAgent(third.rollout_id, third.lease, { ...ending(1), reported: null });
    expect(await Promise.all([one.cancel("user"), finish()])).toMatchObject([{ state: "running" }, "ended"]);
  });
  await of.ended(id);
  expect(await outcomes(of, id)).toEqual({
    [first.rollout_id]: 1,
    [second.rollout_id]: "user",
    [third.rollout_id]: "scorer",
  });
});

for (const at of ["before", "after"] as const) {
  test(`an end whose answer is lost in a kill ${at} its write is accepted when it is sent again`, async () => {
    const of = await openPlatform();
    const { id } = await of.start(capped(script(["one"]), 1, CAP));
    const rollout = await leaseOne(of, "tester");
    const finish = RolloutObject.prototype.finishForAgent;
    let kills = 0;
    vi.spyOn(RolloutObject.prototype, "finishForAgent").mockImplementation(async function (
      this: RolloutObject,
      ...asked
    ) {
      if (!isOf(id, this) || kills > 0) return await finish.apply(this, asked);
      kills += 1;
      const ctx: DurableObjectState = Reflect.get(this, "ctx");
      if (at === "after") await finish.apply(this, asked);
      if (at === "after") await ctx.storage.sync();
      ctx.abort(LOST);
      return "unknown";
    });
    expect((await rollout.finish(SOLVED)).status).toBe(503);
    expect(await answerTo(rollout.finish(SOLVED))).toEqual([200, undefined]);
    expect(await of.ended(id)).toMatchObject({ counts: { scored: 1 } });
    expect(kills).toBe(1);
  });
}

test("an end that its agent reports after the platform shed the rollout is refused", async () => {
  const of = await openPlatform();
  const { id } = await of.start(capped(script(["one"]), 1, CAP));
  const rollout = await leaseOne(of, "tester");
  const { rollout_id } = rollout;
  const reply = await of.inRollout(rollout_id, async ({ object }) => {
    const [, ended] = await Promise.all([
      object.cancel([{ rollout_id, reason: "overload" }]),
      object.finishForAgent(rollout_id, rollout.lease, END),
    ]);
    return ended;
  });
  expect(reply).toEqual({ over: "cancelled: overload" });
  await of.ended(id);
  expect(await outcomes(of, id)).toEqual({ [rollout_id]: "overload" });
});

test("a rollout that the cap ended before a kill keeps this end, whatever its agent reports after it", async () => {
  const of = await openPlatform();
  const { id } = await of.start(capped(script(["one"]), 1, CAP));
  const rollout = await leaseOne(of, "tester");
  let finished = false;
  const answered = RunObject.prototype.answered;
  const { promise: written, resolve } = Promise.withResolvers<void>();
  vi.spyOn(RunObject.prototype, "answered").mockImplementation(function (this: RunObject, reports) {
    if (!isOf(id, this) || finished) return answered.call(this, reports);
    resolve();
    throw new Error(LOST);
  });
  const call = rollout.chat(LARGE);
  await written;
  await of.inRollout(rollout.rollout_id, (_, state) => state.abort(LOST)).catch(() => undefined);
  expect(await answerTo(rollout.finish(SOLVED))).toEqual(budget(rollout));
  finished = true;
  expect((await call).status).toBe(409);
  await of.ended(id);
  expect(await outcomes(of, id)).toEqual({ [rollout.rollout_id]: "budget" });
});

test("a repeat of the end gets the same answer after the objects of the run were freed, and another end the outcome", async () => {
  const of = await openPlatform();
  const { id } = await of.start(capped(script(["one"]), 3, CAP));
  const finish = { answer: "four", ...SOLVED, metrics: { steps: 2 } };
  const failure = { error: { message: "no such file", error: "FileNotFoundError" } };
  const [first, second] = [await leaseOne(of, "tester"), await leaseOne(of, "tester")];
  expect(await answerTo(first.finish(finish))).toEqual([200, undefined]);
  expect(await answerTo(second.finish(failure))).toEqual([200, undefined]);
  const third = await leaseOne(of, "tester");
  expect((await third.chat(LARGE)).status).toBe(409);
  await of.ended(id);
  await of.inRun(id, async (run) => {
    run.now = () => Date.now() + 25 * 3_600_000;
    await run.alarm();
  });
  const facts = await of.inRollout(first.rollout_id, (_, { storage }) =>
    storage.sql.exec("select name from sqlite_master where name = 'facts'").toArray(),
  );
  expect(facts).toEqual([]);
  expect(await answerTo(first.finish(finish))).toEqual([200, undefined]);
  expect(await answerTo(second.finish(failure))).toEqual([200, undefined]);
  expect(await answerTo(first.finish(SOLVED))).toEqual([409, `${first.rollout_id} has ended: scored`]);
  expect(await answerTo(second.finish(SOLVED))).toEqual([409, `${second.rollout_id} has ended: failed: agent`]);
  expect(await answerTo(third.finish(SOLVED))).toEqual(budget(third));
});

function ending(solved: number) {
  const reported = { rewards: { solved: { score: solved, weight: 1 } }, metrics: {} };
  return { answer: null, state: {}, reported, stop_condition: null, is_truncated: false, error: null };
}
