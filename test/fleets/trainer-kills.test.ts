/** A trainer's object that crashes while it notifies its run's fleet; the fleet's object is the real one. */
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { FleetUpdate } from "../../src/contract/fleet.ts";
import { FleetObject } from "../../src/fleets/object.ts";
import { fleetObject } from "../../src/fleets/rpc.ts";
import { TrainerObject } from "../../src/kernel/trainer/object.ts";
import { type Inside, inside, isOf, openPlatform, type TestApi } from "../kernel/platform.ts";
import { GOING, openDelivery } from "../kernel/trainer-batch.ts";
import { insertFleet } from "./rows.ts";

const HOUR = 3_600_000;
const SOON = { interval: 5 };

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});
afterEach(() => {
  vi.restoreAllMocks();
});

interface TrainerNotice {
  count: number;
  /** A call is in progress that never returns. */
  waits: boolean;
}

/** How often the fleet was called; the first call never returns. */
function cutFirst(fleetId: string, what: "update" | "release", at: "before" | "after"): TrainerNotice {
  const told = { count: 0, waits: false };
  const cut = async (fleet: FleetObject, tell: () => Promise<void>): Promise<void> => {
    if (!isOf(fleetId, fleet)) return await tell();
    told.count += 1;
    const first = told.count === 1;
    if (!first || at === "after") await tell();
    told.waits = first;
    // The caller is killed.
    if (first) await new Promise(() => undefined);
  };
  const { update, release } = FleetObject.prototype;
  if (what === "update") {
    vi.spyOn(FleetObject.prototype, what).mockImplementation(async function (this: FleetObject, order) {
      await cut(this, () => update.call(this, order));
    });
  } else {
    vi.spyOn(FleetObject.prototype, what).mockImplementation(async function (this: FleetObject, run_id) {
      await cut(this, () => release.call(this, run_id));
    });
  }
  return told;
}

class Training {
  run_id = "";
  fleet_id = "";

  in<T>(use: Inside<TrainerObject, T>): Promise<T> {
    const { orgId, projectId } = api.scope;
    const stub = env.TRAINER.getByName(`org/${orgId}/${projectId}/${this.run_id}`);
    return inside(stub, TrainerObject, async (object, state) => {
      object.now = () => Date.now() + HOUR;
      return await use(object, state);
    });
  }

  /** Kills the trainer's object once it calls its fleet, and fires its alarm until the fleet was called again. */
  async fall(told: TrainerNotice): Promise<void> {
    await expect.poll(() => told.waits, SOON).toBe(true);
    await this.in((_, state) => state.abort("killed")).catch(() => "killed");
    expect(await this.in((_, { storage }) => storage.getAlarm())).not.toBeNull();
    await this.in((object) => object.alarm());
    await expect.poll(() => told.count, SOON).toBe(2);
  }

  weights = async () => {
    const of = { scope: api.scope, fleet_id: this.fleet_id };
    return (await fleetObject(env, api.scope, this.fleet_id).standing(of)).weights;
  };
}

test.for(["before", "after"] as const)(
  "a trainer's object killed %s its fleet gets an order, and then a release, sends it again",
  async (at) => {
    const training = new Training();
    const { fleet } = await insertFleet(api.scope, { name: at, update: FleetUpdate.parse({ mode: "reported" }) });
    training.fleet_id = fleet.id;
    const ordered = cutFirst(fleet.id, "update", at);
    const { run_id } = await openDelivery(api.scope, { fleet: fleet.id });
    training.run_id = run_id;
    await training.fall(ordered);
    await expect.poll(training.weights, SOON).toEqual({ run_id, version: 0, generation: 0 });
    vi.restoreAllMocks();
    const released = cutFirst(fleet.id, "release", at);
    await training.in((object) => object.ready([], { ...GOING, ended: true }));
    await training.fall(released);
    await expect.poll(training.weights, SOON).toBe(null);
    // The fleet has acknowledged: nothing is sent again.
    await training.in((object) => object.alarm());
    expect([ordered.count, released.count]).toEqual([2, 2]);
  },
);
