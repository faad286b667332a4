/** The queue of an agent's rollouts when the process is killed between two writes, or the queue is lost in a restore. */
import { afterEach, expect, test, vi } from "vitest";
import { AgentsObject } from "../../src/agents/object.ts";
import { RolloutObject } from "../../src/kernel/rollout/object.ts";
import { inside, isOf, openPlatform, type RunOptions, requestsOf, type TestApi } from "../kernel/platform.ts";
import { script } from "../kernel/script.ts";
import { expire, heartbeat, lease, leaseOne, queueOf } from "./agent.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** The runtime's text if the process of an object ended. */
const LOST = "Network connection lost.";
const MINUTE = 60_000;
const SOLVED = { rewards: { solved: 1 } };
const user = (content: string) => ({ role: "user", content });

const request = (model: string, rows = 1): RunOptions => ({
  ...{ environment: "agent", agent: { name: "tester" }, model },
  dataset: Array.from({ length: rows }, (_, row) => ({ question: `Question ${row}?` })),
});

async function killQueue(of: TestApi, wipe = false): Promise<void> {
  const killed = inside(queueOf(of), AgentsObject, async (_, state) => {
    if (wipe) await state.storage.deleteAll();
    await state.storage.sync();
    state.abort(LOST);
  });
  await expect(killed).rejects.toThrow();
}

/** Plays the rollout that is leased now, and expects that it ends once, with one call of the model. */
async function expectOneEnd(of: TestApi, id: string, model: string): Promise<number> {
  const rollout = await leaseOne(of, "tester");
  expect(await rollout.say(user("a"))).toBe("one");
  await rollout.finish(SOLVED);
  expect(await of.ended(id)).toMatchObject({ counts: { scored: 1, in_flight: 0 }, report: { calls: 1 } });
  expect(await requestsOf(model)).toHaveLength(1);
  expect(await of.results(id)).toHaveLength(1);
  return rollout.lease;
}

for (const [at, leases] of [
  ["before", 1],
  ["after", 2],
] as const) {
  test(`a rollout whose queue is killed ${at} the rollout was taken is leased again`, async () => {
    const of = await openPlatform();
    const take = RolloutObject.prototype.takeForAgent;
    let kills = 0;
    const model = script(["one"]);
    const { id } = await of.start(request(model));
    vi.spyOn(RolloutObject.prototype, "takeForAgent").mockImplementation(async function (this: RolloutObject, orders) {
      if (!isOf(id, this) || kills > 0) return await take.call(this, orders);
      kills += 1;
      const taken = at === "after" ? await take.call(this, orders) : [];
      await killQueue(of);
      return taken;
    });
    await expect(leaseOne(of, "tester")).rejects.toThrow("unavailable");
    await expire(of);
    expect(await expectOneEnd(of, id, model)).toBe(leases);
    expect(kills).toBe(1);
  });
}

test("a rollout whose queue is killed before it removed the ended rollout is not leased again", async () => {
  const of = await openPlatform();
  const ended = AgentsObject.prototype.ended;
  let kills = 0;
  const model = script(["one"]);
  const { id } = await of.start(request(model));
  vi.spyOn(AgentsObject.prototype, "ended").mockImplementation(function (this: AgentsObject, rollout_id) {
    if (!isOf(of.scope.projectId, this) || kills > 0) return ended.call(this, rollout_id);
    kills += 1;
    const ctx: DurableObjectState = Reflect.get(this, "ctx");
    ctx.abort(LOST);
  });
  const rollout = await leaseOne(of, "tester");
  expect(await rollout.say(user("a"))).toBe("one");
  await rollout.finish(SOLVED);
  expect(await of.ended(id)).toMatchObject({ counts: { scored: 1 } });
  await expect.poll(() => kills).toBe(1);
  await expire(of);
  expect((await heartbeat(of, rollout)).state).toBe("ended");
  const { rollouts } = await (await of.post("/v1/agents/tester/lease", { worker: "w", wait_s: 0 })).json<{
    rollouts: unknown[];
  }>();
  expect(rollouts).toEqual([]);
  expect(await of.results(id)).toHaveLength(1);
  expect(await requestsOf(model)).toHaveLength(1);
});

test("rollouts whose queue is lost, as in a restore, offer themselves again", async () => {
  const of = await openPlatform();
  const { id } = await of.start(request(script(["one"]), 2));
  const first = await leaseOne(of, "tester");
  await killQueue(of, true);
  await expect(of.inRollout(first.rollout_id, (_, state) => state.abort(LOST))).rejects.toThrow();
  for (const minutes of [11, 22]) {
    await of.inRollout(first.rollout_id, async (one) => {
      one.now = () => Date.now() + minutes * MINUTE;
      await one.alarm();
      one.now = () => Date.now();
    });
  }
  const leased = [];
  while (leased.length < 2) leased.push(...(await lease(of, "tester", 2)));
  expect(new Map(leased.map((one) => [one.rollout_id === first.rollout_id, one.lease]))).toEqual(
    new Map([
      [true, 2],
      [false, 1],
    ]),
  );
  for (const rollout of leased) await rollout.finish(SOLVED);
  expect(await of.ended(id)).toMatchObject({ counts: { scored: 2 } });
});
