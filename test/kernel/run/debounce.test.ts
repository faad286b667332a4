/**
 * A run under any order of events, on an object's real storage: dispatch, reports, scores, losses, retries and restarts
 * in random order, with repeated and late ones.
 */

import { env } from "cloudflare:workers";
import fc from "fast-check";
import { expect, test } from "vitest";
import { RunObject } from "../../../src/index.ts";
import type { RolloutEntry } from "../../../src/kernel/messages/run-records.ts";
import type { RunSpec } from "../../../src/kernel/messages/wire.ts";
import {
  answer,
  cutSegment,
  dispatch,
  fold,
  giveUp,
  requestCancel,
  score,
} from "../../../src/kernel/run/accounting.ts";
import { retry, setPaused } from "../../../src/kernel/run/control.ts";
import { ACCOUNTING_HOOKS } from "../../../src/kernel/run/object.ts";
import { reconcileScoring, takeAnswer } from "../../../src/kernel/run/reconcile.ts";
import { pendingOf, plannedOf } from "../../../src/kernel/run/standing.ts";
import { RunStore } from "../../../src/kernel/run/store.ts";
import { inside } from "../platform.ts";
import { idOf, RUN_SPEC, reportOf, scoreOf } from "../run-rows.ts";

const LATER_MS = 3_600_000;

const pick = fc.nat({ max: 50 });
const rarely = <T>(...values: readonly T[]) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.constantFrom(...values) });
const event = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("dispatch" as const),
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("answer" as const),
      pick,
      failure: rarely("provider" as const, "environment" as const),
      cancelled: rarely("user" as const),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("score" as const),
      pick,
      reward: fc.option(fc.constantFrom(0, 1), { freq: 5 }),
    }),
  },
  fc.record({
    do: fc.constant("hear" as const),
    pick,
    state: fc.constantFrom("unknown" as const, "unreachable" as const, "answered" as const),
  }),
  fc.record({ do: fc.constant("sweep" as const) }),
  fc.record({ do: fc.constant("give up" as const), pick }),
  fc.record({ do: fc.constant("fold" as const), pick: fc.nat({ max: 4 }) }),
  fc.record({ do: fc.constant("pause" as const), paused: fc.boolean() }),
  fc.record({ do: fc.constant("retry" as const) }),
  fc.record({ do: fc.constant("restart" as const) }),
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cancel" as const) }) },
);
type Happening = typeof event extends fc.Arbitrary<infer E> ? E : never;

const shape = fc.record({
  num_examples: fc.integer({ min: 1, max: 4 }),
  rollouts_per_example: fc.integer({ min: 1, max: 3 }),
  whole_groups: fc.boolean(),
});

/** One run, with the checks after every event. */
class RunByHand {
  store: RunStore;
  readonly spec: RunSpec;
  readonly #storage: DurableObjectStorage;
  #now = 1000;
  #ended = new Map<number, string>();

  constructor(storage: DurableObjectStorage, given: Partial<RunSpec>) {
    this.#storage = storage;
    this.store = new RunStore(storage, ACCOUNTING_HOOKS);
    this.spec = { ...RUN_SPEC, ...given };
    this.store.create(this.spec);
  }

  rows(status?: RolloutEntry["status"]): RolloutEntry[] {
    const rows = this.#storage.sql.exec<RolloutEntry>("select * from rollouts order by seq").toArray();
    return status === undefined ? rows : rows.filter((row) => row.status === status);
  }

  apply(happening: Happening): void {
    const { store, spec } = this;
    this.#now += 1;
    switch (happening.do) {
      case "dispatch": {
        const head = store.head();
        const open = head.stop === null && head.settled_at === null;
        const count = open ? Math.min(happening.count, pendingOf(spec, head)) : 0;
        if (count > 0) dispatch(store, spec, count, idOf, this.#now);
        return;
      }
      case "answer": {
        const row = this.#any(happening.pick);
        if (row === null) return;
        const { unit: scoringGroup } = answer(store, spec, reportOf(row, happening), this.#now);
        if (scoringGroup !== null) this.expectComplete(scoringGroup);
        return;
      }
      case "score":
        this.#score(this.#any(happening.pick), happening.reward);
        return;
      case "hear": {
        const { state } = happening;
        takeAnswer(store, spec, this.#any(happening.pick), { state }, this.#now);
        return;
      }
      case "sweep":
        for (const scoringGroup of this.#reconcile()) this.expectComplete(scoringGroup);
        return;
      case "give up": {
        const row = this.#any(happening.pick);
        if (row !== null) giveUp(store, spec, row, GIVEN_UP, this.#now);
        return;
      }
      case "fold":
        cutSegment(store, this.#now);
        fold(store, happening.pick, `segment ${happening.pick}`);
        return;
      case "pause":
        setPaused(store, happening.paused, this.#now);
        return;
      case "retry":
        retry(store, spec, { classes: null, key: null, hash: "" }, this.#now);
        return;
      case "restart":
        this.store = new RunStore(this.#storage, ACCOUNTING_HOOKS);
        return;
      case "cancel":
        requestCancel(store, spec, "user", this.#now);
    }
  }

  /** From any state: every rollout reports, and every complete scoring group is scored. */
  finish(): void {
    setPaused(this.store, false, this.#now);
    for (let round = 0; round < 20 && this.store.head().settled_at === null; round += 1) {
      this.apply({ do: "dispatch", count: 100 });
      for (const row of this.rows("running")) {
        answer(this.store, this.spec, reportOf(row, RIGHT), this.#now);
      }
      for (const row of this.rows("scoring")) this.#score(row, 1);
    }
  }

  check(): void {
    const head = this.store.head();
    const { scored, unscored, failed, cancelled, in_flight, running, dispatched } = head;
    const rows = this.rows();
    const ended = rows.filter(({ status }) => status === "done");
    const counted = [unscored, failed, cancelled].flatMap((by) => Object.values(by));
    const sum = counted.reduce((total, count) => total + count, in_flight + scored);
    expect([dispatched, rows.length]).toEqual([sum, sum]);
    expect(pendingOf(this.spec, head)).toBeGreaterThanOrEqual(0);
    expect(plannedOf(this.spec, head)).toBeGreaterThanOrEqual(dispatched);
    expect(rows.length - ended.length).toBe(in_flight);
    expect(rows.filter(({ status }) => status === "running").length).toBe(running);
    expect(ended.filter(({ outcome }) => outcome === "scored").length).toBe(scored);
    expect(new RunStore(this.#storage, ACCOUNTING_HOOKS).head()).toEqual(head);
    this.#expectRemembered(rows);
    this.#expectEndsFinal(ended);
  }

  /** A group is scored as a whole, when no member can still report. */
  expectComplete(scoringGroup: number): void {
    const members = this.spec.whole_groups ? this.store.group(scoringGroup) : [this.store.bySeq(scoringGroup)];
    const states = members.map((row) => row?.status);
    expect(states).toContain("scoring");
    expect(states).not.toContain("running");
  }

  /** Cached rows equal the stored ones. */
  #expectRemembered(rows: readonly RolloutEntry[]): void {
    expect(rows.map(({ seq }) => this.store.bySeq(seq))).toEqual(rows);
    const slots = rows.map(({ group_index: group, slot, attempt }) => ({ group, slot, attempt }));
    expect(slots.map((slot) => this.store.rollout(slot))).toEqual(rows);
  }

  #expectEndsFinal(ended: readonly RolloutEntry[]): void {
    const numbers = ended.map((row) => row.finish_seq ?? 0).sort((a, b) => a - b);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    for (const { superseded_by: _, asks: __, ask_at: ___, ...row } of ended) {
      const text = JSON.stringify(row);
      expect(this.#ended.get(row.seq) ?? text).toBe(text);
      this.#ended.set(row.seq, text);
    }
  }

  #any(index: number): RolloutEntry | null {
    const rows = this.rows();
    return rows[index % Math.max(1, rows.length)] ?? null;
  }

  #score(row: RolloutEntry | null, reward: number | null): void {
    if (row === null) return;
    const { store, spec } = this;
    const rows = spec.whole_groups ? store.group(row.group_index) : [row];
    score(
      store,
      spec,
      rows.map((member) => scoreOf(member, reward)),
      this.#now,
    );
  }

  #reconcile(): number[] {
    this.#now += LATER_MS;
    return reconcileScoring(this.store, this.spec, this.rows("scoring"), this.#now);
  }
}

async function holds(check: (run: RunByHand, happenings: readonly Happening[]) => void) {
  const stub = env.RUN.getByName(crypto.randomUUID());
  await inside(stub, RunObject, (_, { storage }) =>
    fc.assert(
      fc.asyncProperty(shape, fc.array(event, { maxLength: 40 }), async (given, happenings) => {
        await storage.deleteAll();
        check(new RunByHand(storage, given), happenings);
      }),
    ),
  );
}

test("after any order of events the counts add up, ended rollouts stay as they ended, and a restart reads the same", async () => {
  await holds((run, happenings) => {
    for (const happening of happenings) {
      run.apply(happening);
      run.check();
    }
  });
});

test("after any history, once all rollouts have reported every group closes and the run ends", async () => {
  await holds((run, happenings) => {
    for (const happening of happenings) run.apply(happening);
    run.finish();
    run.check();
    expect(run.store.head()).toMatchObject({ in_flight: 0, running: 0 });
    expect(run.store.head().settled_at).not.toBeNull();
    expect(run.rows().every(({ status }) => status === "done")).toBe(true);
  });
});

test("an ended run stays ended whatever arrives late, until it is retried", async () => {
  await holds((run, happenings) => {
    run.finish();
    const before = run.store.head();
    const late = happenings.filter(({ do: kind }) => kind !== "retry" && kind !== "fold");
    for (const happening of late) run.apply(happening);
    expect({ ...run.store.head(), last_event: 0 }).toEqual({ ...before, last_event: 0 });
  });
});

const RIGHT = { failure: null, cancelled: null } as const;
const GIVEN_UP = {
  from: "running",
  outcome: "failed",
  reason: "platform",
  message: "lost",
} as const;
