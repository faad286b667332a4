/** The storage of a webhook endpoint's object, at its limits. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { LIMITS } from "../../src/contract/limits.ts";
import { WebhookObject } from "../../src/index.ts";
import { NEW_STANDING, type Standing } from "../../src/webhooks/deliveries.ts";
import { WebhookStore } from "../../src/webhooks/store.ts";
import { inside } from "../kernel/platform.ts";
import { eventOf } from "./listening.ts";

const OF = { scope: { orgId: "org_a", projectId: "pj_a" }, webhook_id: "wh_a" };
const TRIED = { status: 500, answer: "no", error: null, latency_ms: 1 };

/** As if this much were already pending or given up. */
function standing<T>(changes: Partial<Standing>, use: (store: WebhookStore) => T): Promise<T> {
  const stub = env.WEBHOOK.getByName(crypto.randomUUID());
  return inside(stub, WebhookObject, (_, { storage }) => {
    storage.kv.put("standing", { ...NEW_STANDING, ...changes });
    return use(new WebhookStore(storage));
  });
}

function sizeOf(store: WebhookStore): number {
  return store.due(1, 9)[0]?.bytes ?? 0;
}

test("a delivery fits up to the last byte of the limit, and beyond it the oldest is dropped", async () => {
  const bytes = await standing({}, (store) => {
    store.add(OF, [eventOf("a", 1)], 1);
    return sizeOf(store);
  });
  const left = (free: number) =>
    standing({ pending_bytes: LIMITS.webhookBacklogBytes - bytes - free }, (store) => {
      store.add(OF, [eventOf("a", 1)], 1);
      return store.add(OF, [eventOf("b", 1)], 2);
    });
  expect([await left(bytes), await left(bytes - 1)]).toEqual([0, 1]);
});

/** Gives up one delivery when this much was given up already. Returns how many were dropped, and its state. */
const givenUp = (already: Partial<Standing>) =>
  standing({ ...already, delivered_at: 5 }, (store) => {
    store.add(OF, [eventOf("a", 1)], 1);
    const [row] = store.due(1, 1);
    if (row === undefined) throw new Error("nothing is due");
    expect(store.giveUp({ ...row, first_at: 2 }, 9)).toBe(true);
    const { failed, failed_bytes, dropped } = store.standing();
    return { failed, failed_bytes, dropped, state: store.find(row.id)?.state };
  });

test("as many given-up deliveries are kept as may be pending, and one more drops the oldest", async () => {
  const most = LIMITS.webhookBacklog;
  expect(await givenUp({ failed: most - 1 })).toMatchObject({ failed: most, dropped: 0, state: "failed" });
  expect(await givenUp({ failed: most })).toMatchObject({ failed: most, dropped: 1, state: undefined });
});

test("given-up deliveries may be as large as pending ones, and one more byte drops the oldest", async () => {
  const { failed_bytes: bytes } = await givenUp({});
  const most = LIMITS.webhookBacklogBytes;
  const full = { failed: 1, failed_bytes: most - bytes };
  expect(await givenUp(full)).toMatchObject({ failed_bytes: most, dropped: 0, state: "failed" });
  full.failed_bytes += 1;
  expect(await givenUp(full)).toMatchObject({ failed_bytes: most - bytes + 1, dropped: 1, state: undefined });
});

test("a failed delivery is the endpoint's fault if nothing was delivered since its first attempt", async () => {
  const given = (delivered_at: number | null) =>
    standing({ delivered_at }, (store) => {
      store.add(OF, [eventOf("a", 1)], 1);
      const [row] = store.due(1, 1);
      if (row === undefined) throw new Error("nothing is due");
      return store.giveUp({ ...row, first_at: 7 }, 9);
    });
  expect([await given(null), await given(6), await given(7), await given(8)]).toEqual([false, false, true, true]);
});

test("a failure that asks for no wait does not end the wait that another answer asked for", () =>
  standing({}, (store) => {
    store.add(OF, [eventOf("a", 1), eventOf("b", 1)], 1);
    const [one, other] = store.due(1, 2);
    if (one === undefined || other === undefined) throw new Error("too few are due");
    // Both were sent at once.
    for (const row of [one, other]) store.begin(row, 10, 20);
    store.failed(one.id, TRIED, 10, 3_600_000);
    store.failed(other.id, TRIED, 11, null);
    expect([store.standing().resting_until, store.nextAt(), store.due(3_600_009, 2)]).toEqual([
      3_600_010,
      3_600_010,
      [],
    ]);
    store.failed(other.id, TRIED, 12, 1000);
    expect(store.standing().resting_until).toBe(1012);
  }));

test("a server that asks to wait gets nothing before the time is over, even if the next attempt is due", () =>
  standing({}, (store) => {
    store.add(OF, [eventOf("a", 1)], 1);
    const [row] = store.due(1, 1);
    if (row === undefined) throw new Error("nothing is due");
    store.begin(row, 10, 20);
    expect(store.failed(row.id, TRIED, 10, 3_600_000)).toBe(true);
    expect([store.nextAt(), store.standing().failures_in_a_row]).toEqual([3_600_010, 1]);
    store.delivered(row.id, TRIED, 50);
    expect(store.standing()).toMatchObject({ failures_in_a_row: 0, resting_until: null, delivered_at: 50 });
  }));
