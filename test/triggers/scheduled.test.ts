/** Triggers that start runs by themselves: the object's clock and alarm are the test's. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { TriggerObject } from "../../src/index.ts";
import { triggerObject } from "../../src/triggers/rpc.ts";
import { TriggerView } from "../../src/triggers/wire.ts";
import { openPlatform } from "../kernel/platform.ts";
import { accepting, acceptRow, ENDS, end, type Opened, openedOnRows } from "./opened.ts";

const HOUR_MS = 3_600_000;
const HOURLY = { cron: "0 * * * *" };

interface Scheduled extends Opened {
  /** Moves the object's clock, and runs its alarm. */
  readonly at: (time: number) => Promise<void>;
  /** The first due time. */
  readonly due: number;
  readonly patch: (changes: object) => Promise<TriggerView>;
  readonly read: () => Promise<TriggerView>;
}

async function scheduled(concurrency: "allow" | "queue" = "allow", schedule: object = HOURLY): Promise<Scheduled> {
  const on = await openedOnRows(concurrency);
  const { api, of, within } = on;
  const path = `/v1/triggers/${of.trigger_id}`;
  const patch = async (changes: object) => {
    const body = JSON.stringify(changes);
    const reply = await api.ask(path, { method: "PATCH", headers: { "content-type": "application/json" }, body });
    if (reply.status !== 200) throw new Error(await reply.text());
    return TriggerView.parse(await reply.json());
  };
  const { next_at } = await patch({ schedule, map: {} });
  const at = (time: number) => {
    return within(async (object) => {
      object.now = () => time;
      await object.alarm();
    });
  };
  const read = async () => TriggerView.parse(await (await api.ask(path)).json());
  return { ...on, at, due: (next_at ?? 0) * 1000, patch, read };
}

/** With a new stub: that of an object that was killed stays broken. */
async function logOf({ of }: Scheduled) {
  return (await triggerObject(env, of).log({ before: null, limit: 20 })).map(({ delivery_id, state }) => [
    delivery_id,
    state,
  ]);
}

/** Runs `between` once the object's next read of the database has its rows, before the object gets them. */
function interrupt(object: TriggerObject, between: () => Promise<void>): void {
  const whole: Env = Reflect.get(object, "env");
  const held = (statement: D1PreparedStatement): D1PreparedStatement => {
    return new Proxy(statement, {
      get(target, name) {
        return (...args: unknown[]) => {
          const result = Reflect.get(target, name).apply(target, args);
          if (name === "bind") return held(result);
          return result.then(async (rows: unknown) => {
            await between();
            return rows;
          });
        };
      },
    });
  };
  const DB = new Proxy(whole.DB, {
    get(target, name) {
      if (name !== "prepare") return Reflect.get(target, name);
      return (query: string) => {
        Object.defineProperty(object, "env", { value: whole, configurable: true });
        return held(target.prepare(query));
      };
    },
  });
  Object.defineProperty(object, "env", { value: { ...whole, DB }, configurable: true });
}

/** `cron`: null for no schedule. */
async function scheduleRow(id: string, cron: string | null): Promise<void> {
  const written = env.DB.prepare("update triggers set schedule = ?, map = '{}' where id = ?");
  await written.bind(cron === null ? null : JSON.stringify({ cron, timezone: "UTC" }), id).run();
}

const idAt = (time: number) => `schedule.${new Date(time).toISOString()}`;

test("each due time starts one run, and nothing is started before it", async () => {
  const on = await scheduled();
  expect(on.due % HOUR_MS).toBe(0);
  await on.at(on.due - 1);
  expect(await on.runs()).toEqual([]);
  await on.at(on.due);
  await on.at(on.due + 1000);
  expect(await on.runs()).toHaveLength(1);
  await on.at(on.due + HOUR_MS);
  expect(await on.runs()).toHaveLength(2);
  expect(await logOf(on)).toEqual([
    [idAt(on.due + HOUR_MS), "started"],
    [idAt(on.due), "started"],
  ]);
});

test("the alarm is set to the due time, without any delivery", async () => {
  const on = await scheduled();
  expect(await on.within((_, { storage }) => storage.getAlarm())).toBe(on.due);
});

test("after days asleep one run starts, and the next one at its usual time", async () => {
  const on = await scheduled();
  await on.at(on.due + 50 * HOUR_MS + 1);
  expect(await on.runs()).toHaveLength(1);
  expect(await logOf(on)).toEqual([[idAt(on.due), "started"]]);
  await on.at(on.due + 51 * HOUR_MS - 1);
  expect(await on.runs()).toHaveLength(1);
  await on.at(on.due + 51 * HOUR_MS);
  expect(await on.runs()).toHaveLength(2);
});

test("a kill while the run is being created, or right after it, neither loses nor repeats the run of a due time", async () => {
  for (const made of [false, true]) {
    const on = await scheduled();
    await on.within((object) => {
      object.now = () => on.due;
      accepting(object, async (...asked) => {
        if (made) await acceptRow(...asked);
        return await new Promise(() => undefined);
      });
      object.alarm().catch(String);
    });
    await expect.poll(() => logOf(on), { interval: 10 }).toHaveLength(1);
    if (made) await expect.poll(on.runs, { interval: 10 }).toHaveLength(1);
    await on.within((_, state) => state.abort("killed")).catch(() => undefined);
    await on.within((object) => accepting(object, acceptRow));
    await on.at(on.due + 60_000);
    expect(await on.runs()).toHaveLength(1);
    expect(await logOf(on)).toEqual([[idAt(on.due), "started"]]);
  }
});

test("a kill between the change of a schedule and its alarm loses no schedule", async () => {
  const on = await openedOnRows("allow");
  const { of, within } = on;
  await on.object.expectChange(of, "http://platform.test");
  await scheduleRow(of.trigger_id, HOURLY.cron);
  await within((_, state) => state.abort("killed")).catch(() => undefined);
  await within(async (object, { storage }) => {
    const looked = (await storage.getAlarm()) ?? 0;
    object.now = () => looked;
    await object.alarm();
    expect(await storage.getAlarm()).toBe(Math.ceil((looked + 1) / HOUR_MS) * HOUR_MS);
  });
});

test("a kill loses no schedule, although another change read the trigger before it was written", async () => {
  const origin = "http://platform.test";
  // The other change was not announced, or announced after this one, or the alarm read the trigger for an older one.
  for (const other of ["unannounced", "announced", "overdue"]) {
    const on = await openedOnRows("allow");
    const { of, within } = on;
    await within(async (object, { storage }) => {
      if (other !== "overdue") await object.expectChange(of, origin, "this");
      if (other === "unannounced") await object.changed(of);
      else await object.expectChange(of, origin, "other");
      if (other === "announced") await object.changed(of, "other");
      if (other !== "overdue") return;
      const looked = (await storage.getAlarm()) ?? 0;
      object.now = () => looked;
      interrupt(object, () => object.expectChange(of, origin, "this"));
      await object.alarm();
    });
    await scheduleRow(of.trigger_id, HOURLY.cron);
    await within((_, state) => state.abort("killed")).catch(() => undefined);
    await within(async (object, { storage }) => {
      const looked = (await storage.getAlarm()) ?? 0;
      object.now = () => looked;
      await object.alarm();
      expect(await storage.getAlarm(), other).toBe(Math.ceil((looked + 1) / HOUR_MS) * HOUR_MS);
    });
  }
});

test("a trigger that is deleted while its alarm reads it starts nothing and leaves nothing", async () => {
  const on = await scheduled();
  await on.within((object) => interrupt(object, () => object.free()));
  await on.at(on.due);
  // The row is deleted after the object is freed.
  expect(await on.read()).toMatchObject({ schedule: HOURLY });
  expect(await on.runs()).toEqual([]);
  await on.within((_, { storage }) => {
    expect([...storage.kv.list()].map(([name]) => name)).toEqual(["freed_at"]);
    expect(storage.sql.exec("select name from sqlite_master where name = 'deliveries'").toArray()).toEqual([]);
  });
});

test("a schedule that is changed while the alarm reads the old one stays, and starts at its own time", async () => {
  const on = await scheduled();
  await on.within((object) =>
    interrupt(object, async () => {
      await scheduleRow(on.of.trigger_id, "30 * * * *");
      await object.changed(on.of);
    }),
  );
  await on.at(on.due);
  expect(await on.runs()).toEqual([]);
  const next = on.due + HOUR_MS / 2;
  expect(await on.within((_, { storage }) => storage.getAlarm())).toBe(next);
  await on.at(next);
  expect(await logOf(on)).toEqual([[idAt(next), "started"]]);
});

test("a read of the schedule that ends after a later one does not bring back what it found", async () => {
  for (const older of [null, "0 0 1 1 *"]) {
    const on = await scheduled();
    await scheduleRow(on.of.trigger_id, older);
    await on.within(async (object) => {
      object.now = () => on.due - 1;
      interrupt(object, async () => {
        await scheduleRow(on.of.trigger_id, HOURLY.cron);
        await object.changed(on.of);
      });
      await object.changed(on.of);
    });
    await on.at(on.due);
    expect(await logOf(on)).toEqual([[idAt(on.due), "started"]]);
  }
});

test("an announced change whose read ends after a later one takes its announcement back", async () => {
  const on = await scheduled();
  await on.within(async (object, { storage }) => {
    await object.expectChange(on.of, "http://platform.test", "this");
    interrupt(object, () => object.changed(on.of));
    await object.changed(on.of, "this");
    expect(await storage.getAlarm()).toBe(on.due);
  });
});

test("a start that is refused is in the log, and the schedule goes on", async () => {
  const on = await scheduled();
  const refusal = { code: "unmet_need", message: "the endpoint was deleted", param: "endpoint" } as const;
  await on.within((object) => accepting(object, async () => ({ ok: false, error: refusal })));
  await on.at(on.due);
  expect(await on.object.log({ before: null, limit: 9 })).toMatchObject([
    { event: "schedule", state: "refused", error: refusal, run_id: null },
  ]);
  await on.within((object) => accepting(object, acceptRow));
  await on.at(on.due + HOUR_MS);
  expect(await on.runs()).toHaveLength(1);
});

test("a start that is refused for now is tried again, although no sender repeats it", async () => {
  const on = await scheduled();
  const busy = { code: "rate_limited", message: "too many runs", param: null } as const;
  await on.within((object) => accepting(object, async () => ({ ok: false, error: busy })));
  await on.at(on.due);
  expect(await logOf(on)).toEqual([[idAt(on.due), "accepted"]]);
  await on.within((object) => accepting(object, acceptRow));
  await on.at(on.due + 120_000);
  expect(await logOf(on)).toEqual([[idAt(on.due), "started"]]);
});

test("with concurrency queue a due time waits for the run before", async () => {
  const on = await scheduled("queue");
  await on.at(on.due);
  const [first] = await on.runs();
  await on.at(on.due + HOUR_MS);
  expect(await on.runs()).toHaveLength(1);
  await end(first?.id ?? null);
  await on.at(on.due + HOUR_MS + 60_000);
  expect(await on.runs()).toHaveLength(2);
});

test("a disabled trigger starts nothing, and an enabled one starts nothing for the time it was disabled", async () => {
  const on = await scheduled();
  expect((await on.patch({ disabled: true })).next_at).toBeNull();
  await on.at(on.due + 2 * HOUR_MS);
  expect(await on.runs()).toEqual([]);
  expect((await on.patch({ disabled: false })).next_at).not.toBeNull();
  await on.at(on.due + 2 * HOUR_MS);
  expect(await on.runs()).toEqual([]);
  await on.at(on.due + 3 * HOUR_MS);
  expect(await on.runs()).toHaveLength(1);
});

test("a change of the schedule replaces it, and null ends it", async () => {
  const on = await scheduled();
  const later = await on.patch({ schedule: { cron: "30 6 * * *" } });
  expect(new Date((later.next_at ?? 0) * 1000).toISOString()).toMatch(/T06:30:00/);
  await on.patch({ schedule: null });
  await on.at(on.due + 48 * HOUR_MS);
  expect(await on.runs()).toEqual([]);
  expect(await on.read()).toMatchObject({ schedule: null, next_at: null });
});

test("a field of the run can be filled with the due time", async () => {
  const on = await scheduled();
  await on.patch({ map: { "metadata.due": "$.due" } });
  await on.at(on.due);
  expect((await on.runs())[0]?.metadata).toEqual({ due: new Date(on.due).toISOString() });
});

test("a deleted trigger starts nothing", async () => {
  const on = await scheduled();
  await on.api.ask(`/v1/triggers/${on.of.trigger_id}`, { method: "DELETE" });
  await on.at(on.due + HOUR_MS);
  expect(await on.runs()).toEqual([]);
});

test("a trigger is created with a schedule and no signing scheme, and a bad schedule is refused", async () => {
  const api = await openPlatform();
  const made = await api.post("/v1/triggers", { name: "nightly", schedule: { cron: "0 6 * * 1" }, run: ENDS });
  expect(made.status).toBe(201);
  expect(await made.json()).toMatchObject({
    schedule: { cron: "0 6 * * 1", timezone: "UTC" },
    verify: { scheme: "standard" },
    next_at: expect.any(Number),
    secret: expect.stringMatching(/^whsec_/),
  });
  for (const [schedule, param] of [
    [{ cron: "* * * * *" }, "schedule.cron"],
    [{ cron: "0 6 * *" }, "schedule.cron"],
    [{ cron: "0 6 * * 1", timezone: "Moon" }, "schedule.timezone"],
  ] as const) {
    const refused = await api.post("/v1/triggers", { name: "other", schedule, run: ENDS });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { param } });
  }
});
