/** Cached rows: always equal to the stored ones, after any write, rollback or manual change. */

import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { RunObject } from "../../../src/index.ts";
import type { RolloutEntry } from "../../../src/kernel/messages/run-records.ts";
import type { RunSpec } from "../../../src/kernel/messages/wire.ts";
import { cancelOne } from "../../../src/kernel/run/control.ts";
import { RowsInFlight } from "../../../src/kernel/run/rows-in-flight.ts";
import { inside } from "../platform.ts";
import { Hand } from "../run-by-hand.ts";

const FIRST = { group: 0, slot: 0, attempt: 0 };

/** The run's cached rows and its stored rows after each of the steps. */
function afterEach(
  steps: readonly ((run: Hand, storage: DurableObjectStorage) => void)[],
  given: Partial<RunSpec> = {},
): Promise<void> {
  const run_id = crypto.randomUUID();
  return inside(env.RUN.getByName(run_id), RunObject, (_, { storage }) => {
    const run = new Hand(storage, { run_id, ...given });
    for (const step of steps) {
      step(run, storage);
      const stored = storage.sql.exec<RolloutEntry>("select * from rollouts order by seq").toArray();
      const bySlot = ({ group_index: group, slot, attempt }: RolloutEntry) => ({ group, slot, attempt });
      expect(stored.map(({ seq }) => run.store.bySeq(seq))).toEqual(stored);
      expect(stored.map((row) => run.store.rollout(bySlot(row)))).toEqual(stored);
    }
  });
}

test("a row is cached from its dispatch to its end as it is stored", () =>
  afterEach([(run) => run.dispatch(), (run) => run.answer(), (run) => run.score()]));

test("what a failed transaction wrote is not cached, neither changes nor new rows", async () => {
  await afterEach(
    [
      (run) => run.dispatch(1),
      ({ store }) => {
        const failing = () =>
          store.transaction(() => {
            store.setRollout(1, { asks: 7, cancel: "user" });
            store.addRollout(
              { ...FIRST, group: 1 },
              { id: "ro_new", at: 1, askAt: 2, carries: null, host: 9, ceiling: 0 },
            );
            throw new Error("it failed");
          });
        expect(failing).toThrow("it failed");
        expect(store.rollout(FIRST)).toMatchObject({ asks: 0, cancel: null });
        expect(store.rollout({ ...FIRST, group: 1 })).toBeNull();
      },
      (run) => run.dispatch(1),
    ],
    { num_examples: 2 },
  );
});

test("an ended row does not change by a retry except for its successor, and the next attempt is a row of its own", () =>
  afterEach(
    [
      (run) => run.dispatch(),
      (run) => run.answer(1),
      (run) => run.retry(),
      (run) => run.dispatch(),
      ({ store }) => {
        expect(store.rollout(FIRST)).toMatchObject({ status: "done", superseded_by: expect.any(String) });
        expect(store.rollout({ ...FIRST, attempt: 1 })).toMatchObject({ status: "running", superseded_by: null });
      },
    ],
    { num_examples: 2 },
  ));

test("the cached row shows that a rollout must stop, for one rollout or for all of its group", () =>
  afterEach(
    [
      (run) => run.dispatch(),
      ({ store }) => expect(cancelOne(store, FIRST)).toBe(true),
      ({ store }) => store.cancelGroup(1, "stale"),
      ({ store }) => {
        expect(store.rollout(FIRST)?.cancel).toBe("user");
        expect(store.rollout({ ...FIRST, group: 1 })?.cancel).toBe("stale");
      },
    ],
    { num_examples: 2 },
  ));

test("rows that a restart makes due are cached as due at once", () =>
  afterEach([
    (run) => run.dispatch(),
    (run) => run.store.askAll(run.now),
    ({ store }) => expect(store.bySeq(1)?.ask_at).toBe(0),
  ]));

test("a row object returned earlier does not change", () =>
  afterEach([
    (run) => run.dispatch(),
    ({ store }) => {
      const before = store.bySeq(1);
      store.setRollout(1, { asks: 3 });
      expect(before?.asks).toBe(0);
    },
  ]));

test("beyond the limit the row that was cached first is read again", async () => {
  const run_id = crypto.randomUUID();
  await inside(env.RUN.getByName(run_id), RunObject, (_, { storage }) => {
    const run = new Hand(storage, { run_id, num_examples: 3 });
    run.dispatch();
    const rows = new RowsInFlight(2);
    for (const row of run.rows("running")) rows.remember(row);
    expect([1, 2, 3].map((seq) => rows.bySeq(seq)?.seq)).toEqual([undefined, 2, 3]);
    expect(rows.inSlot(FIRST)).toBeUndefined();
    expect(rows.inSlot({ ...FIRST, group: 2 })?.seq).toBe(3);
  });
});
