import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { Json } from "../../src/contract/json.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import type { RunView } from "../../src/contract/run.ts";
import { insertRun } from "../../src/db/runs.ts";
import { TriggerObject } from "../../src/index.ts";
import { accountObject, folderOf } from "../../src/runtime/kit/names.ts";
import { acceptRun } from "../../src/runtime/service/accept-run.ts";
import type { AcceptRun } from "../../src/triggers/begin-run.ts";
import type { DeliveryOutcome, SignedDelivery, TriggerPlace, TriggerRpc } from "../../src/triggers/rpc.ts";
import { triggerObject } from "../../src/triggers/rpc.ts";
import type { CreatedTrigger, TriggerConcurrency } from "../../src/triggers/wire.ts";
import { endpointRow, runRow } from "../api/run-rows.ts";
import { openPaying, payIn } from "../runtime/paying.ts";
import { type Door, type Inside, inside, openPlatform } from "../runtime/platform.ts";
import { script } from "../runtime/script.ts";

const WRONG = { tool_calls: [{ name: "guess", arguments: { number: 900 } }] };
const GAME = {
  ...{ environment: "guess-number", environment_args: { max: 1000, max_turns: 1 }, num_examples: 1 },
  endpoint: { base_url: env.MODEL_URL },
};
const ENDS = { ...GAME, model: script([WRONG]) };

interface Opened {
  readonly door: Door;
  readonly of: TriggerPlace;
  readonly object: TriggerRpc;
  readonly deliver: (id: string, filling?: Readonly<Record<string, Json>>) => Promise<DeliveryOutcome>;
  readonly within: <T>(use: Inside<TriggerObject, T>) => Promise<T>;
  readonly runs: () => Promise<RunView[]>;
}

async function opened(run: object, concurrency: TriggerConcurrency = "allow", at?: Door): Promise<Opened> {
  const door = at ?? (await openPlatform());
  const asked = { name: "t", verify: { scheme: "standard" }, run, map: { "metadata.n": "$.n" }, concurrency };
  const made = await door.post("/v1/triggers", asked);
  if (made.status !== 201) throw new Error(await made.text());
  const { id: trigger_id } = await made.json<CreatedTrigger>();
  const of = { scope: door.scope, trigger_id };
  const object = triggerObject(env, of);
  const deliver: Opened["deliver"] = (id, filling = { "metadata.n": id }) => {
    return triggerObject(env, of).deliver(of, deliveryOf(id, concurrency, { kind: "begin", filling }));
  };
  // A stub of an object that was aborted stays broken: each call has its own.
  const stub = () => env.TRIGGER.getByName(`${folderOf(of.scope)}${trigger_id}`);
  const within: Opened["within"] = (use) => inside(stub(), TriggerObject, use);
  const runs = async () => (await (await door.ask("/v1/runs?order=asc")).json<{ data: RunView[] }>()).data;
  return { door, of, object, deliver, within, runs };
}

function deliveryOf(id: string, concurrency: TriggerConcurrency, verdict: SignedDelivery["verdict"]): SignedDelivery {
  return { ids: [id], event: "made.up", verdict, concurrency, origin: "http://platform.test" };
}

/** Puts another way to accept runs in its place. */
function accepting(object: TriggerObject, accept: AcceptRun): void {
  Object.defineProperty(object, "acceptRun", { value: accept, configurable: true });
}

/** Runs that are rows and nothing else: they go on until a test ends them. */
const acceptRow: AcceptRun = async (_env, scope, { metadata }, { idempotencyKey: idempotency_key, now }) => {
  const run = runRow(endpointRow(), { metadata, status: "running", idempotency_key, created_at: now });
  await insertRun(env.DB, scope, run, null);
  return { ok: true, value: { run } };
};

async function end(id: string | null): Promise<void> {
  await env.DB.prepare("update runs set status = 'completed' where id = ?").bind(id).run();
}

async function openedOnRows(concurrency: TriggerConcurrency): Promise<Opened> {
  const on = await opened(ENDS, concurrency);
  await on.within((object) => accepting(object, acceptRow));
  return on;
}

test("a thousand deliveries of one id at once begin one run, and all are told it", async () => {
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

test("a kill before the run is made, or right behind it, loses no run and makes no second one", async () => {
  for (const made of [false, true]) {
    const { deliver, within, runs } = await opened(ENDS);
    await within((object) =>
      accepting(object, async (...asked) => {
        if (made) await acceptRun(...asked);
        throw new Error("killed");
      }),
    );
    expect(await deliver("d1")).toMatchObject({ state: "accepted", run_id: null });
    expect(await runs()).toHaveLength(made ? 1 : 0);
    await within(async (object) => {
      accepting(object, acceptRun);
      await object.alarm();
    });
    expect(await deliver("d1"), "before its time").toMatchObject({ run_id: null, duplicate: true });
    await within(async (object) => {
      const then = Date.now() + 60_000;
      object.now = () => then;
      await object.alarm();
    });
    const [run, ...others] = await runs();
    expect(others).toEqual([]);
    expect(await deliver("d1")).toMatchObject({ run_id: run?.id, duplicate: true, state: "started" });
  }
});

test("a kill of the object while a run is being begun, or right behind it, loses none and makes no second one", async () => {
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

test("a run that nobody can pay for is refused in the log, and the same delivery begins it once somebody can", async () => {
  const { door, deliver, object } = await opened(ENDS, "allow", await openPaying(0));
  expect(await deliver("d1")).toMatchObject({ state: "refused", error: { code: "insufficient_balance" } });
  await payIn(door, 10_000_000);
  const { orgId } = door.scope;
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

test("in a queue each begins when the run before it has ended, in the order they came", async () => {
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
  // Whoever comes next finds that the run before is over: what waited first begins, without an alarm.
  await queue.within((object) => {
    const then = Date.now() + 10_000;
    object.now = () => then;
  });
  expect(await queue.deliver("d4")).toMatchObject(waits);
  expect((await queue.runs()).map(({ metadata }) => metadata["n"])).toEqual(["d1", "d2", "d3"]);
});

test("a queue waits for the run that goes on however many deliveries came since that began none", async () => {
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

test("one that waited for days is begun all the same after failures and refusals that pass, at its turn", async () => {
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

test("coalesced, only the latest waits, and the others say what took their place", async () => {
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

test("a queue that is full refuses, and the same delivery is looked at anew later", async () => {
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

test("a run that is refused says so in the delivery, as does a maker who may start none any more", async () => {
  const { door, of, deliver, object, runs } = await opened(ENDS);
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
  expect(door.scope).toEqual(of.scope);
});

test("copies of what began nothing are one entry, and push nothing out of the log", async () => {
  const { of, object, deliver, within } = await opened(ENDS);
  await deliver("begun");
  // As GitHub's are: the sender may give it any id, and what is signed is the body.
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

test("what was ignored is looked at anew: once it is not, it begins its run", async () => {
  const { of, deliver, object } = await opened(ENDS);
  const ignored = deliveryOf("d1", "allow", { kind: "ignored", reason: "when: $.ref is null" });
  expect(await object.deliver(of, ignored)).toMatchObject({ state: "ignored", duplicate: false });
  expect(await object.deliver(of, ignored)).toMatchObject({ state: "ignored", duplicate: true, error: null });
  expect(await deliver("d1")).toMatchObject({ state: "started", duplicate: false });
  expect(await object.deliver(of, ignored)).toMatchObject({ state: "started", duplicate: true });
  expect((await object.log({ before: null, limit: 9 })).map(({ state }) => state)).toEqual(["started", "ignored"]);
});

test("an object of a time when each copy had its entry goes on, and knows copies from then on", async () => {
  const { of, object, within } = await opened(ENDS);
  const ignored = deliveryOf("d1", "allow", { kind: "ignored", reason: "when: $.ref is null" });
  await object.deliver(of, ignored);
  await within((_, { storage }) => void storage.sql.exec("drop table passed"));
  await within((_, state) => state.abort("upgraded")).catch(() => undefined);
  const again = () => triggerObject(env, of).deliver(of, ignored);
  expect([await again(), await again()]).toMatchObject([{ duplicate: false }, { duplicate: true }]);
});

test("of a flood that nobody signed a few are written, the rest counted, and the others stay in the log", async () => {
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

test("webhooks are told of a refusal, once a minute for each reason", async () => {
  const { door, of, object, deliver } = await opened(ENDS);
  const asked = { url: `${env.MODEL_URL}/hook`, events: ["trigger.refused"] };
  const { id } = await (await door.post("/v1/webhook-endpoints", asked)).json<{ id: string }>();
  const unsigned = { code: "invalid_signature", message: "not signed", param: null } as const;
  for (let n = 0; n < 3; n += 1) await object.refused(of, unsigned);
  await deliver("d1", { seed: "no number" });
  const log = await door.ask(`/v1/webhook-endpoints/${id}/deliveries?limit=100`);
  const { data } = await log.json<{ data: { type: string }[] }>();
  expect(data.map(({ type }) => type)).toEqual(["trigger.refused", "trigger.refused"]);
});

test("the log keeps so many, and a delivery that has left it is known all the same, for seven days", async () => {
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
  // As if a flood had come that began nothing.
  await within((_, { storage }) => storage.kv.put("serial", LIMITS.deliveryIds + 5000));
  await object.deliver(of, deliveryOf("after the flood", "allow", ignored));
  expect(await deliver("d1")).toMatchObject({ run_id, duplicate: true, state: "started" });
  await within((inner) => {
    const then = Date.now() + LIMITS.deliveryIdMs + 1000;
    inner.now = () => then;
  });
  await object.deliver(of, deliveryOf("another", "allow", ignored));
  // The run's own key still knows it.
  expect(await deliver("d1")).toMatchObject({ run_id, duplicate: false, state: "started" });
});

test("one that nobody ever delivered to, or that was freed, says nothing and writes nothing", async () => {
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
