/** The log of a trigger's deliveries: its pages, and the run that a queue waits for. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { TriggerObject } from "../../src/index.ts";
import { DeliveryStore } from "../../src/triggers/store.ts";
import { inside } from "../kernel/platform.ts";

function store<T>(use: (store: DeliveryStore) => T): Promise<T> {
  const stub = env.TRIGGER.getByName(crypto.randomUUID());
  return inside(stub, TriggerObject, (_, { storage }) => use(new DeliveryStore(storage)));
}

/** Adds deliveries whose run is still to be started. Returns their serial numbers. */
function accepted(log: DeliveryStore, count: number): readonly number[] {
  return Array.from({ length: count }, (_, n) =>
    log.write(() => {
      const asked = { event: "made.up", state: "accepted", error: null, origin: null, try_at: 5 } as const;
      return log.add({ ids: [`d${n}`], filling: {}, ...asked }, true, n);
    }),
  );
}

test("a queue waits for the latest unfinished run, until it is known to have ended", () =>
  store((log) => {
    for (const serial of accepted(log, 3)) log.started(serial, `run_${serial}`);
    expect(log.going()).toBe("run_3");
    log.noteEnded();
    expect(log.going()).toBeNull();
  }));

test("pages of the log follow each other without gaps or repeated entries", () =>
  store((log) => {
    accepted(log, 3);
    log.write(() => log.addUnsigned({ code: "unauthorized", message: "no", param: null }, 4, 9));
    const serials = (before: number | null, limit: number) => log.page(before, limit).map(({ serial }) => serial);
    expect(serials(null, 2)).toEqual([4, 3]);
    expect([serials(3, 2), serials(2, 9), serials(1, 9), serials(4, 1)]).toEqual([[2, 1], [1], [], [3]]);
  }));

test("the accepted delivery that is due first is taken up next, and a postponed one later", () =>
  store((log) => {
    const [first = 0, second = 0] = accepted(log, 2);
    log.postpone(first, 90);
    expect([log.nextTry(), log.pendingOne(first)?.tries, log.pendingOne(second)?.tries]).toEqual([5, 1, 0]);
    log.started(second, "run_2");
    expect([log.nextTry(), log.count("accepted")]).toEqual([90, 1]);
  }));
