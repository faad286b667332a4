import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { LIMITS } from "../../src/contract/limits.ts";
import { accountObject } from "../../src/kernel/kit/names.ts";
import { acceptRun } from "../../src/kernel/service/accept-run.ts";
import type { AcceptRun } from "../../src/triggers/begin-run.ts";
import type { SignedDelivery } from "../../src/triggers/rpc.ts";
import { triggerObject } from "../../src/triggers/rpc.ts";
import { openPaying, payIn } from "../kernel/paying.ts";
import { accepting, acceptRow, deliveryOf, ENDS, end, opened, openedOnRows } from "./opened.ts";

const DAY_MS = 86_400_000;

test("a thousand concurrent deliveries with one id start one run, and all get its id", async () => {
  const { of, deliver, object, within, runs } = await opened(ENDS);
  const once = deliveryOf("d1", "allow", { kind: "begin", filling: { "metadata.n": "d1" } });
  const outside = Promise.all(Array.from({ length: 50 }, () => deliver("d1")));
  const inside = within((inner) => Promise.all(Array.from({ length: 950 }, () => inner.deliver(of, once))));
  const told = [...(await outside), ...(await inside)];
  expect(told).toHaveLength(1000);
  const [run, ...others] = await runs();
  expect(others).toEqual([]);
  expect(run?.metadata).toEqual({ n: "d1" });
  expect(new Set(told.map(({ run_id }) => run_id))).toEqual(new Set([run?.id]));
  expect(told.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
  expect(await object.log({ before: null, limit: 9 })).toMatchObject([{ delivery_id: "d1", state: "started" }]);
  expect(await deliver("d2")).toMatchObject({ duplicate: false, state: "started" });
});

test("a kill before the run is created, or right after it, loses no run and creates no second one", async () => {
  for (const made of [false, true]) {
    const { deliver, within, runs } = await opened(ENDS);
    const delivered = Date.now();
    await within((object) => {
      object.now = () => delivered;
      accepting(object, async (...asked) => {
        if (made) await acceptRun(...asked);
        throw new Error("killed");
      });
    });
    expect(await deliver("d1")).toMatchObject({ state: "accepted", run_id: null });
    expect(await runs()).toHaveLength(made ? 1 : 0);
    await within(async (object) => {
      accepting(object, acceptRun);
      await object.alarm();
    });
    expect(await deliver("d1"), "before its time").toMatchObject({ run_id: null, duplicate: true });
    await within(async (object) => {
      object.now = () => delivered + 60_000;
      await object.alarm();
    });
    const [run, ...others] = await runs();
    expect(others).toEqual([]);
    expect(await deliver("d1")).toMatchObject({ run_id: run?.id, duplicate: true, state: "started" });
  }
});

test("a kill of the object while a run is being started, or right after it, neither loses nor repeats it", async () => {
  for (const made of [false, true]) {
    const { of, deliver, within, runs } = await opened(ENDS);
    await within((object) => {
      accepting(object, async (...asked) => {
        if (made) await acceptRun(...asked);
        return await new Promise(() => undefined);
      });
      object.deliver(of, deliveryOf("d1", "allow", { kind: "begin", filling: { "metadata.n": "d1" } })).catch(String);
    });
    if (made) await expect.poll(runs, { interval: 10 }).toHaveLength(1);
    await within((_, state) => state.abort("killed")).catch(() => undefined);
    await within(async (object) => {
      const then = Date.now() + 60_000;
      object.now = () => then;
      await object.alarm();
    });
    const [run, ...others] = await runs();
    expect([run?.metadata, others]).toEqual([{ n: "d1" }, []]);
    expect(await deliver("d1")).toMatchObject({ run_id: run?.id, duplicate: true, state: "started" });
  }
});

test("a run without enough money is refused in the log, and the same delivery starts it later", async () => {
  const { api, deliver, object } = await opened(ENDS, "allow", await openPaying(0));
  expect(await deliver("d1")).toMatchObject({ state: "refused", error: { code: "insufficient_balance" } });
  await payIn(api, 10_000_000);
  const { orgId } = api.scope;
  const insert = env.DB.prepare("insert into budgets values (?, ?, 'organization', ?, 1, 1, 1)");
  await insert.bind(`bud_${orgId}`, orgId, orgId).run();
  await accountObject(env, orgId).changed();
  expect(await deliver("d1")).toMatchObject({ state: "refused", error: { code: "budget_exhausted" } });
  await env.DB.prepare("delete from budgets where org_id = ?").bind(orgId).run();
  await accountObject(env, orgId).changed();
  expect(await deliver("d1")).toMatchObject({ state: "started", duplicate: false });
  const log = await object.log({ before: null, limit: 9 });
  expect(log.map(({ state, error }) => error?.code ?? state)).toEqual([
    ...["started", "budget_exhausted", "insufficient_balance"],
  ]);
});

test("in a queue each delivery starts when the previous run has ended, in the order of arrival", async () => {
  const queue = await openedOnRows("queue");
  const first = await queue.deliver("d1");
  const waits = { state: "waiting", run_id: null };
  expect([await queue.deliver("d2"), await queue.deliver("d3")]).toMatchObject([waits, waits]);
  await queue.within((object) => object.alarm());
  expect(await queue.runs()).toHaveLength(1);
  await end(first.run_id);
  await queue.within((object) => object.alarm());
  const second = await queue.deliver("d2");
  expect(second).toMatchObject({ state: "started", duplicate: true });
  expect(await queue.deliver("d3")).toMatchObject(waits);
  await end(second.run_id);
  // The next delivery finds that the previous run is over: the first waiting one starts, without an alarm.
  await queue.within((object) => {
    const then = Date.now() + 10_000;
    object.now = () => then;
  });
  expect(await queue.deliver("d4")).toMatchObject(waits);
  expect((await queue.runs()).map(({ metadata }) => metadata["n"])).toEqual(["d1", "d2", "d3"]);
});

test("a queue waits for the unfinished run, however many deliveries that started none came since", async () => {
  const { of, deliver, within, runs } = await openedOnRows("queue");
  const first = await deliver("d1");
  const ignored = { kind: "ignored", reason: "when: $.ref is null" } as const;
  await within(async (inner) => {
    for (let n = 0; n < LIMITS.deliveriesLogged + 100; n += 1) {
      await inner.deliver(of, deliveryOf(`other ${n}`, "queue", ignored));
    }
  });
  expect(await deliver("d2")).toMatchObject({ state: "waiting", run_id: null });
  expect(await runs()).toHaveLength(1);
  await end(first.run_id);
  await within((object) => object.alarm());
  expect(await deliver("d2")).toMatchObject({ state: "started", duplicate: true });
});

test("a delivery that waited for days is started at its turn, despite temporary failures and refusals", async () => {
  const queue = await openedOnRows("queue");
  const full = { code: "rate_limited", message: "too many runs", param: null } as const;
  const ways: AcceptRun[] = [
    async () => ({ ok: false, error: full }),
    () => Promise.reject(new Error("no")),
    acceptRow,
  ];
  const { run_id } = await queue.deliver("d1");
  expect(await queue.deliver("d2")).toMatchObject({ state: "waiting" });
  await end(run_id);
  await queue.within(async (object) => {
    let then = Date.now() + 3 * 86_400_000;
    object.now = () => then;
    for (const way of ways) {
      accepting(object, way);
      await object.alarm();
      then += 60_000;
    }
  });
  expect(await queue.deliver("d2")).toMatchObject({ state: "started", duplicate: true });
});

test("with coalesce only the latest delivery waits, and the others name the one that replaced them", async () => {
  const latest = await openedOnRows("coalesce");
  const first = await latest.deliver("d1");
  for (const id of ["d2", "d3", "d4"]) await latest.deliver(id);
  expect(await latest.deliver("d2")).toMatchObject({ state: "superseded", duplicate: true, run_id: null });
  await end(first.run_id);
  await latest.within((object) => object.alarm());
  expect((await latest.runs()).map(({ metadata }) => metadata["n"])).toEqual(["d1", "d4"]);
  const states = (await latest.object.log({ before: null, limit: 9 })).map((one) => [one.state, one.superseded_by]);
  expect(states).toEqual([
    ["started", null],
    ["superseded", 4],
    ["superseded", 3],
    ["started", null],
  ]);
});

test("a full queue refuses, and the same delivery is evaluated again later", async () => {
  const queue = await openedOnRows("queue");
  const { of, deliver, object, within } = queue;
  await deliver("d0");
  await within(async (inner) => {
    const begin = { kind: "begin", filling: { "metadata.n": "x" } } as const;
    for (let n = 1; n <= LIMITS.triggerWaiting; n += 1) await inner.deliver(of, deliveryOf(`d${n}`, "queue", begin));
  });
  const refused = await deliver("late");
  expect(refused).toMatchObject({ state: "refused", duplicate: false, error: { code: "rate_limited" } });
  expect(await deliver("late")).toMatchObject({ state: "refused", duplicate: false });
  expect(await object.log({ before: null, limit: 1 })).toMatchObject([
    { state: "refused", error: { code: "rate_limited" } },
  ]);
});

test("a refused run is shown in the delivery, and so is a maker who may no longer start runs", async () => {
  const { api, of, deliver, object, runs } = await opened(ENDS);
  expect(await deliver("d1", { seed: "no number" })).toMatchObject({
    state: "refused",
    error: { code: "invalid_request", param: "run.seed" },
  });
  const who = env.DB.prepare("select created_by from triggers where id = ?").bind(of.trigger_id);
  const key = await who.first<string>("created_by");
  await env.DB.prepare("update api_keys set revoked_at = 1 where id = ?").bind(key).run();
  expect(await deliver("d2")).toMatchObject({ state: "refused", error: { code: "forbidden" } });
  await env.DB.prepare("update api_keys set revoked_at = null, expires_at = 1 where id = ?").bind(key).run();
  expect(await deliver("d3")).toMatchObject({ error: { code: "forbidden" } });
  await env.DB.prepare(`update api_keys set expires_at = null, scopes = '["triggers:write"]' where id = ?`)
    .bind(key)
    .run();
  expect(await deliver("d4")).toMatchObject({ error: { code: "forbidden" } });
  await env.DB.prepare(`update api_keys set scopes = '["admin"]' where id = ?`).bind(key).run();
  expect(await deliver("d4")).toMatchObject({ state: "started", duplicate: false });
  expect((await object.log({ before: null, limit: 9 })).map(({ state }) => state)).toEqual([
    "started",
    ...Array(4).fill("refused"),
  ]);
  expect(await runs()).toHaveLength(1);
  expect(api.scope).toEqual(of.scope);
});

test("repeats that start no run are one entry, and push nothing out of the log", async () => {
  const { of, object, deliver, within } = await opened(ENDS);
  await deliver("begun");
  // Like GitHub's deliveries: only the body is signed, so the sender may use any id.
  const copy = (n: number, verdict: SignedDelivery["verdict"]) =>
    ({ ...deliveryOf("", "allow", verdict), ids: [`copy-${n}`, `body of ${verdict.kind}`] }) as const;
  const verdicts: SignedDelivery["verdict"][] = [
    { kind: "answered" },
    { kind: "ignored", reason: "when: $.ref is null" },
    { kind: "refused", error: { code: "conflict", message: "the trigger is disabled", param: null } },
    { kind: "begin", filling: { seed: "no number" } },
  ];
  await within(async (inner, { storage }) => {
    for (const verdict of verdicts) {
      for (let n = 0; n < 100; n += 1) await inner.deliver(of, copy(n, verdict));
    }
    expect(storage.sql.exec("select * from passed").toArray().length).toBeLessThan(2 * LIMITS.deliveriesLogged);
  });
  const log = await object.log({ before: null, limit: 1000 });
  expect(log.map(({ state, error }) => error?.code ?? state)).toEqual([
    ...["invalid_request", "conflict", "invalid_request", "answered", "started"],
  ]);
});

test("an ignored delivery is evaluated again, and starts its run once it matches", async () => {
  const { of, deliver, object } = await opened(ENDS);
  const ignored = deliveryOf("d1", "allow", { kind: "ignored", reason: "when: $.ref is null" });
  expect(await object.deliver(of, ignored)).toMatchObject({ state: "ignored", duplicate: false });
  expect(await object.deliver(of, ignored)).toMatchObject({ state: "ignored", duplicate: true, error: null });
  expect(await deliver("d1")).toMatchObject({ state: "started", duplicate: false });
  expect(await object.deliver(of, ignored)).toMatchObject({ state: "started", duplicate: true });
  expect((await object.log({ before: null, limit: 9 })).map(({ state }) => state)).toEqual(["started", "ignored"]);
});

test("an object from before repeats shared an entry continues, and recognises repeats from then on", async () => {
  const { of, object, within } = await opened(ENDS);
  const ignored = deliveryOf("d1", "allow", { kind: "ignored", reason: "when: $.ref is null" });
  await object.deliver(of, ignored);
  await within((_, { storage }) => void storage.sql.exec("drop table passed"));
  await within((_, state) => state.abort("upgraded")).catch(() => undefined);
  const again = () => triggerObject(env, of).deliver(of, ignored);
  expect([await again(), await again()]).toMatchObject([{ duplicate: false }, { duplicate: true }]);
});

test("of a flood of unsigned deliveries a few are logged and the rest counted, and other entries stay", async () => {
  const { of, object, deliver, within } = await opened(ENDS);
  await deliver("d1");
  const clock = { now: 1_800_000_000_000 };
  await within((inner) => {
    inner.now = () => clock.now;
  });
  const error = { code: "invalid_signature", message: "not signed", param: null } as const;
  await within(async (inner) => {
    for (let minute = 0; minute < 30; minute += 1) {
      for (let n = 0; n < 10; n += 1) await inner.refused(of, error);
      clock.now += 60_000;
    }
  });
  const log = await object.log({ before: null, limit: 1000 });
  expect(log.filter(({ delivery_id }) => delivery_id === null)).toHaveLength(LIMITS.unsignedLogged);
  expect(log.find(({ more }) => more > 0)).toMatchObject({ state: "refused", more: 4, error });
  expect(log.at(-1)).toMatchObject({ delivery_id: "d1", state: "started" });
});

test("webhooks get an event for a refusal, once a minute for each reason", async () => {
  const { api, of, object, deliver } = await opened(ENDS);
  const asked = { url: `${env.MODEL_URL}/hook`, events: ["trigger.refused"] };
  const { id } = await (await api.post("/v1/webhook-endpoints", asked)).json<{ id: string }>();
  const unsigned = { code: "invalid_signature", message: "not signed", param: null } as const;
  for (let n = 0; n < 3; n += 1) await object.refused(of, unsigned);
  await deliver("d1", { seed: "no number" });
  const log = await api.ask(`/v1/webhook-endpoints/${id}/deliveries?limit=100`);
  const { data } = await log.json<{ data: { type: string }[] }>();
  expect(data.map(({ type }) => type)).toEqual(["trigger.refused", "trigger.refused"]);
});

test("a delivery whose run could not be started for a day is refused, with an event for webhooks", async () => {
  const { api, deliver, within, object } = await opened(ENDS);
  const asked = { url: `${env.MODEL_URL}/hook`, events: ["trigger.refused"] };
  const { id } = await (await api.post("/v1/webhook-endpoints", asked)).json<{ id: string }>();
  const told = async () => {
    const log = await api.ask(`/v1/webhook-endpoints/${id}/deliveries`);
    return (await log.json<{ data: { event: string }[] }>()).data.map(({ event }) => event.split("_").at(-2));
  };
  await within((inner) => accepting(inner, () => Promise.reject(new Error("the store is away"))));
  expect(await deliver("d1")).toMatchObject({ state: "accepted" });
  const tryAfter = (ms: number) =>
    within((inner) => {
      inner.now = () => Date.now() + ms;
      return inner.alarm();
    });
  await tryAfter(DAY_MS - 60_000);
  expect([await object.log({ before: null, limit: 9 }), await told()]).toMatchObject([[{ state: "accepted" }], []]);
  await tryAfter(DAY_MS + 60_000);
  const error = { code: "internal", message: "no run could be started for a day" };
  expect(await object.log({ before: null, limit: 9 })).toMatchObject([{ state: "refused", error }]);
  expect(await told()).toEqual(["internal"]);
});

test("the log has a maximum of entries, and a delivery that has left it is recognised for seven days", async () => {
  const { deliver, within, object, of } = await opened(ENDS);
  const { run_id } = await deliver("d1");
  const ignored = { kind: "ignored", reason: "when: $.ref is null" } as const;
  await within(async (inner) => {
    for (let n = 0; n < LIMITS.deliveriesLogged + 50; n += 1)
      await inner.deliver(of, deliveryOf(`other-${n}`, "allow", ignored));
  });
  const log = await object.log({ before: null, limit: 2000 });
  expect(log.length).toBeGreaterThanOrEqual(LIMITS.deliveriesLogged);
  expect(log.length).toBeLessThan(LIMITS.deliveriesLogged + 50);
  expect(log.slice(0, LIMITS.deliveriesLogged).every(({ state }) => state === "ignored")).toBe(true);
  expect(await deliver("d1")).toMatchObject({ run_id, duplicate: true, state: "started" });
  // As if many deliveries that started no run had come.
  await within((_, { storage }) => storage.kv.put("serial", LIMITS.deliveryIds + 5000));
  await object.deliver(of, deliveryOf("after the flood", "allow", ignored));
  expect(await deliver("d1")).toMatchObject({ run_id, duplicate: true, state: "started" });
  await within((inner) => {
    const then = Date.now() + LIMITS.deliveryIdMs + 1000;
    inner.now = () => then;
  });
  await object.deliver(of, deliveryOf("another", "allow", ignored));
  // The run's Idempotency-Key still identifies it.
  expect(await deliver("d1")).toMatchObject({ run_id, duplicate: false, state: "started" });
});

test("an object without deliveries, or a freed one, returns nothing and writes nothing", async () => {
  const { of, object, deliver, within, runs } = await opened(ENDS);
  expect(await object.log({ before: null, limit: 9 })).toEqual([]);
  await object.changed(of);
  await deliver("d1");
  await object.free();
  expect(await deliver("d2")).toMatchObject({ state: "refused", error: { code: "not_found" } });
  await object.refused(of, { code: "invalid_signature", message: "", param: null });
  await within((inner) => inner.alarm());
  expect(await object.log({ before: null, limit: 9 })).toEqual([]);
  expect(await runs()).toHaveLength(1);
});
