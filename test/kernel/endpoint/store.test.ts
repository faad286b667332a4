/** What an endpoint's object stores: in real storage, with kills at each write. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { NO_OUTCOMES } from "../../../src/kernel/endpoint/health.ts";
import { ask, dropExpired, LEASE_MS, newEndpoint } from "../../../src/kernel/endpoint/lease-state.ts";
import { EndpointObject } from "../../../src/kernel/endpoint/object.ts";
import { EndpointStore, type Kept } from "../../../src/kernel/endpoint/store.ts";
import type { LeaseAsk } from "../../../src/kernel/messages/endpoint-wire.ts";
import { Life } from "../life.ts";
import { inside } from "../platform.ts";

const START = 1_000_000;
const scope = { orgId: "org_stored", projectId: "pj_stored" };
const identity = { scope, endpoint_id: "ep_stored", limits_at: START };

let objects = 0;
/** The storage of an object of its own, in which nothing is stored. */
function inStorage<T>(use: (storage: DurableObjectStorage) => T): Promise<T> {
  objects += 1;
  const stub: DurableObjectStub = env.ENDPOINT.getByName(`org/org_stored/pj_stored/ep_${objects}`);
  return inside(stub, EndpointObject, (_, { storage }) => use(storage));
}

function askOf(run: number, need: Partial<LeaseAsk> = {}): LeaseAsk {
  const names = { endpoint_id: "ep_stored", run_id: `run_${run}`, model: "m" };
  return { scope, ...names, running: 0, wants: 4, more: true, outcomes: NO_OUTCOMES, ...need };
}

function keptOf(runs: number): Kept {
  let state = newEndpoint({ max_concurrent: 100, rpm: null });
  for (let run = 0; run < runs; run += 1) state = ask(state, askOf(run), START).state;
  return { ...identity, state };
}

function asking(kept: Kept, asked: LeaseAsk, now = START + 1000): Kept {
  return { ...kept, state: ask(kept.state, asked, now).state };
}

/** As plain data. */
function plain(kept: Kept | null) {
  return kept === null ? null : { ...kept, state: { ...kept.state, runs: Object.fromEntries(kept.state.runs) } };
}

function keysOf(storage: DurableObjectStorage): string[] {
  return Array.from(storage.kv.list(), ([key]) => key);
}

test("what was saved is loaded again, and an ask writes one row, or the head too if the health changed", async () => {
  await inStorage((storage) => {
    const first = keptOf(5);
    const store = new EndpointStore(storage);
    store.save(first);
    expect(plain(new EndpointStore(storage).load())).toEqual(plain(first));
    expect(keysOf(storage)).toEqual(["head", "run/run_0", "run/run_1", "run/run_2", "run/run_3", "run/run_4"]);

    // One row and the end of the transaction: the next write would kill it.
    const frugal = new EndpointStore(new Life(2).storage(storage));
    const again = asking(loaded(frugal), askOf(2, { running: 3 }));
    frugal.save(again);
    expect(plain(new EndpointStore(storage).load())).toEqual(plain(again));

    const failed = asking(loaded(store), askOf(2, { outcomes: { ...NO_OUTCOMES, streak: 2 } }));
    store.save(failed);
    expect(new EndpointStore(storage).load()?.state.health.streak).toBe(2);
  });
});

function loaded(store: EndpointStore): Kept {
  const kept = store.load();
  if (kept === null) throw new Error("nothing is stored");
  return kept;
}

test("a kill at any write of a save leaves all of it or nothing", async () => {
  const before = keptOf(4);
  let killed = 0;
  for (let writes = 0; ; writes += 1) {
    const isKilled = await inStorage((storage) => {
      new EndpointStore(storage).save(before);
      const dying = new EndpointStore(new Life(writes).storage(storage));
      const failing = { running: 2, outcomes: { ...NO_OUTCOMES, streak: 3 } };
      const joined = asking(asking(loaded(dying), askOf(9)), askOf(1, failing));
      const after = asking(joined, askOf(2, { wants: 0, more: false }));
      if (survives(() => dying.save(after))) {
        expect(plain(new EndpointStore(storage).load())).toEqual(plain(after));
        return false;
      }
      expect(plain(new EndpointStore(storage).load())).toEqual(plain(before));
      return true;
    });
    if (!isKilled) break;
    killed += 1;
  }
  // A head, a row that left, two rows, and the end of the transaction.
  expect(killed).toBe(5);
});

function survives(write: () => void): boolean {
  try {
    write();
    return true;
  } catch (thrown) {
    expect(String(thrown)).toContain("killed");
    return false;
  }
}

test("the value of an earlier release is read and stored as rows, and a kill at any write changes nothing", async () => {
  const older = keptOf(3);
  let killed = 0;
  for (let writes = 0; ; writes += 1) {
    const isKilled = await inStorage((storage) => {
      storage.kv.put("endpoint", plain(older));
      const survived = survives(() => void new EndpointStore(new Life(writes).storage(storage)).load());
      expect(keysOf(storage)).toEqual(survived ? ["head", "run/run_0", "run/run_1", "run/run_2"] : ["endpoint"]);
      expect(plain(new EndpointStore(storage).load())).toEqual(plain(older));
      return !survived;
    });
    if (!isKilled) break;
    killed += 1;
  }
  expect(killed).toBeGreaterThan(4);
});

test("after a rollback the value that the older release wrote replaces all rows", async () => {
  await inStorage((storage) => {
    new EndpointStore(storage).save(keptOf(5));
    const older = keptOf(2);
    storage.kv.put("endpoint", plain(older));
    expect(plain(new EndpointStore(storage).load())).toEqual(plain(older));
    expect(keysOf(storage)).toEqual(["head", "run/run_0", "run/run_1"]);
  });
});

test("an endpoint whose leases all expired, or that is cleared, leaves no row", async () => {
  await inStorage((storage) => {
    const store = new EndpointStore(storage);
    const kept = keptOf(3);
    store.save(kept);
    store.save({ ...kept, state: dropExpired(kept.state, START + LEASE_MS) });
    expect(keysOf(storage)).toEqual(["head"]);
    store.save(kept);
    store.clear();
    expect(keysOf(storage)).toEqual([]);
    expect(store.load()).toBeNull();
  });
});

test("nothing is written for an endpoint that no run uses", async () => {
  await inStorage((storage) => {
    expect(new EndpointStore(storage).load()).toBeNull();
    expect(keysOf(storage)).toEqual([]);
  });
});

test("an object with an earlier release's value grants what is left beside it", async () => {
  const id = "ep_upgraded";
  const stub: DurableObjectStub = env.ENDPOINT.getByName(`org/org_stored/pj_stored/${id}`);
  await inside(stub, EndpointObject, async (object, { storage }) => {
    const now = Date.now();
    object.now = () => now;
    const state = ask(newEndpoint({ max_concurrent: 6, rpm: null }), askOf(1), now).state;
    storage.kv.put("endpoint", plain({ scope, endpoint_id: id, state, limits_at: now }));
    const grant = await object.ask({ ...askOf(2), endpoint_id: id });
    expect(grant).toMatchObject({ permits: 2, shared: true });
    expect(keysOf(storage)).toEqual(["head", "run/run_1", "run/run_2"]);
  });
});
