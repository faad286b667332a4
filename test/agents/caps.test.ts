/** Agents in a run with `max_cost_micros`: what waits for money, what gives it back, and how rollouts end at the cap. */
import { expect, test } from "vitest";
import { expectLaw, openPlatform, requestsOf } from "../kernel/platform.ts";
import { script } from "../kernel/script.ts";
import { capped, leaseOne, outcomes } from "./agent.ts";

const user = (content: string) => ({ role: "user", content });
/** A call of the model with a prompt of about so many bytes; its bound is that, and 200 for the answer. */
const prompt = (bytes: number) => ({ messages: [user("a".repeat(bytes))] });

async function refusalOf(call: Promise<Response>) {
  const response = await call;
  const { error } = await response.json<{ error: { code: string; message: string } }>();
  return [response.status, error.code, error.message];
}

const ENDED = [409, "rollout_ended", "the rollout has ended: budget"];

test("a call that the cap does not cover ends its rollout, although another rollout waits for a worker", async () => {
  const of = await openPlatform();
  const model = script(["one", "two"]);
  const { id } = await of.start(capped(model, 2, 5000));
  const first = await leaseOne(of, "tester");
  expect(await first.say(user("a"))).toBe("one");
  expect(await refusalOf(first.chat(prompt(9000)))).toEqual(ENDED);
  const second = await leaseOne(of, "tester");
  expect(second.rollout_id).not.toBe(first.rollout_id);
  expect(await second.say(user("a"))).toBe("one");
  await second.finish({ rewards: { solved: 1 } });
  const run = await of.ended(id);
  expectLaw(run.counts);
  expect(await outcomes(of, id)).toEqual({ [first.rollout_id]: "budget", [second.rollout_id]: 1 });
  expect(run.report.counted_micros).toBeLessThanOrEqual(5000);
});

test("a rollout between two calls gives back what it has not spent to a call that waits", async () => {
  const of = await openPlatform();
  const { id } = await of.start(capped(script(["one", "two"]), 2, 5000));
  const [first, second] = [await leaseOne(of, "tester"), await leaseOne(of, "tester", "other")];
  await second.say(user("a"));
  await first.say(user("a"));
  expect((await first.chat(prompt(3400))).status).toBe(200);
  await second.say(user("b"));
  for (const rollout of [first, second]) await rollout.finish({ rewards: { solved: 1 } });
  expect(await of.ended(id)).toMatchObject({ counts: { scored: 2 } });
});

test("after a call that did not fit nothing more begins, and the run ends when its other rollouts have ended", async () => {
  const of = await openPlatform();
  const model = script(["one", "two"]);
  const { id } = await of.start({ ...capped(model, 3, 5000), max_concurrent: 2 });
  const [first, second] = [await leaseOne(of, "tester"), await leaseOne(of, "tester", "other")];
  expect(await refusalOf(first.chat(prompt(9000)))).toEqual(ENDED);
  await expect.poll(async () => (await of.run(id)).counts.cancelled).toEqual({ budget: 1 });
  expect((await of.run(id)).status_reason).toMatchObject({ state: "over_budget" });
  await second.finish({ rewards: { solved: 1 } });
  const run = await of.ended(id);
  expect(run).toMatchObject({ status: "completed", counts: { scored: 1, pending: 1, cancelled: { budget: 1 } } });
  expect(await requestsOf(model)).toEqual([]);
  expect((await of.post(`/v1/runs/${id}/retry`, {})).status).toBe(409);
});
