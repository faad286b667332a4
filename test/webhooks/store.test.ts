/** What a webhook's object keeps of its deliveries, at the bounds of what it may keep. */
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

/** As if so much waited, or had been given up, already. */
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

test("a delivery has room up to the last byte that may wait, and beyond it the oldest goes", async () => {
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

/** What stays of one delivery that is given up where so much was already: how many were dropped for it, and its state. */
const givenUp = (already: Partial<Standing>) =>
  standing({ ...already, delivered_at: 5 }, (store) => {
    store.add(OF, [eventOf("a", 1)], 1);
    const [row] = store.due(1, 1);
    if (row === undefined) throw new Error("nothing is due");
    expect(store.giveUp({ ...row, first_at: 2 }, 9)).toBe(true);
    const { failed, failed_bytes, dropped } = store.standing();
    return { failed, failed_bytes, dropped, state: store.find(row.id)?.state };
  });

test("as many may be given up and kept as may wait, and one more drops the oldest of them", async () => {
  const most = LIMITS.webhookBacklog;
  expect(await givenUp({ failed: most - 1 })).toMatchObject({ failed: most, dropped: 0, state: "failed" });
  expect(await givenUp({ failed: most })).toMatchObject({ failed: most, dropped: 1, state: undefined });
});

test("what is given up may be as large as what waits, and a byte more drops the oldest of it", async () => {
  const { failed_bytes: bytes } = await givenUp({});
  const most = LIMITS.webhookBacklogBytes;
  const full = { failed: 1, failed_bytes: most - bytes };
  expect(await givenUp(full)).toMatchObject({ failed_bytes: most, dropped: 0, state: "failed" });
  full.failed_bytes += 1;
  expect(await givenUp(full)).toMatchObject({ failed_bytes: most - bytes + 1, dropped: 1, state: undefined });
});

test("what was tried in vain is its address's fault where nothing was delivered since its first try", async () => {
  const given = (delivered_at: number | null) =>
    standing({ delivered_at }, (store) => {
      store.add(OF, [eventOf("a", 1)], 1);
      const [row] = store.due(1, 1);
      if (row === undefined) throw new Error("nothing is due");
      return store.giveUp({ ...row, first_at: 7 }, 9);
    });
  expect([await given(null), await given(6), await given(7), await given(8)]).toEqual([false, false, true, true]);
});

test("a server that asks for a rest is told nothing before it is over, though the next try were due", () =>
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
