/**
 * A training run under any order of events, on an object's real storage: arrivals, failures, publications,
 * acknowledgements, resets, cancels and restarts in random order.
 */

import { env } from "cloudflare:workers";
import fc from "fast-check";
import { expect, test } from "vitest";
import { RunObject } from "../../../../src/index.ts";
import { requestCancel } from "../../../../src/kernel/run/accounting.ts";
import { ACCOUNTING_HOOKS } from "../../../../src/kernel/run/object.ts";
import { recordsOf } from "../../../../src/kernel/run/records.ts";
import { countsOf } from "../../../../src/kernel/run/report.ts";
import { RunStore } from "../../../../src/kernel/run/store.ts";
import { trainingRecords } from "../../../../src/kernel/run/training/view.ts";
import type { TrainGroup } from "../../../../src/kernel/run/training-state.ts";
import { expectLaw, inside } from "../../platform.ts";
import { RIGHT, TrainingByHand } from "../../training-rows.ts";

const pick = fc.nat({ max: 50 });
const does = <Name extends string>(name: Name) => fc.constant(name);
const event = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: does("dispatch"), count: fc.integer({ min: 1, max: 9 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: does("answer"), count: fc.integer({ min: 1, max: 6 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: does("fail"), pick }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: does("score"),
      pick,
      rewards: fc.constantFrom([0, 1], [1, 0], [1, 1], [null, 1], [0.5, 1]),
      samples: fc.nat({ max: 9 }).map((at) => at > 0),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: does("cut") }) },
  { weight: 3, arbitrary: fc.record({ do: does("ack") }) },
  { weight: 3, arbitrary: fc.record({ do: does("publish") }) },
  { weight: 1, arbitrary: fc.record({ do: does("repeat") }) },
  { weight: 1, arbitrary: fc.record({ do: does("reset"), pick }) },
  { weight: 1, arbitrary: fc.record({ do: does("come back"), pick }) },
  { weight: 1, arbitrary: fc.record({ do: does("stop what was told to") }) },
  { weight: 1, arbitrary: fc.record({ do: does("restart") }) },
);
type Happening = typeof event extends fc.Arbitrary<infer E> ? E : never;

const shape = fc.record({
  lead: fc.integer({ min: 0, max: 2 }),
  max_off_policy_steps: fc.integer({ min: 0, max: 3 }),
  zero_variance: fc.constantFrom("drop" as const, "refill" as const, "keep" as const),
  batch_size: fc.constantFrom({ rollouts: 4 }, { rollouts: 3 }, { tokens: 35 }),
  min_group_size: fc.integer({ min: 1, max: 2 }),
});

type Of<Name extends Happening["do"]> = Extract<Happening, { do: Name }>;
type Appliers = { [Name in Happening["do"]]: (run: TrainingByHand, it: Of<Name>) => void };

const APPLY: Appliers = {
  dispatch: (run, { count }) => void run.dispatch(count),
  answer: (run, { count }) => {
    for (const row of run.rows("running").slice(0, count)) run.answer(row);
  },
  fail: (run, { pick: at }) => {
    const row = picked(run.rows("running"), at);
    if (row !== null) run.answer(row, { failure: "provider", cancelled: null });
  },
  score: (run, { pick: at, rewards, samples }) => {
    const row = picked(run.rows("scoring"), at);
    if (row !== null) run.score(row.group_index, rewards, samples);
  },
  cut: (run) => void run.cut(),
  ack: (run) => {
    const acked_step = run.trainer.acked_step + 1;
    if (acked_step < run.training.step) run.tell({ acked_step });
  },
  publish: (run) => {
    const { published, acked_step } = run.trainer;
    if (published < acked_step) run.tell({ published: published + 1 });
  },
  repeat: (run) => run.tell(),
  reset: (run, { pick: at }) => {
    const { published, generation } = run.trainer;
    if (published === 0 || run.store.head().settled_at !== null) return;
    const to = at % published;
    const gone = { generation: generation + 1, reset_to: to };
    run.tell({ ...gone, published: to, acked_step: to });
  },
  "come back": (run, { pick: at }) => {
    const { published, acked_step } = run.trainer;
    if (acked_step === published || run.store.head().settled_at !== null) return;
    run.tell({ acked_step: published + (at % (acked_step - published)) });
  },
  "stop what was told to": (run) => {
    for (const row of run.rows("running")) {
      if (row.cancel !== null) run.answer(row, { failure: null, cancelled: row.cancel });
    }
  },
  restart: (run) => run.restart(),
};

function apply<Name extends Happening["do"]>(run: TrainingByHand, it: Of<Name>): void {
  run.now += 1;
  const applier: Appliers[Name] = APPLY[it.do];
  applier(run, it);
}

function picked<Row>(rows: readonly Row[], at: number): Row | null {
  return rows[at % Math.max(1, rows.length)] ?? null;
}

function check(run: TrainingByHand): void {
  const { store, spec, training } = run;
  const head = store.head();
  expectLaw(countsOf(spec, head));
  const { counters, run_rows, tallies } = recordsOf(run.storage.sql, spec, head, trainingRecords);
  expect(run_rows).toEqual(counters);
  expect(tallies.run_rows).toEqual(tallies.counters);
  expect(new RunStore(run.storage, ACCOUNTING_HOOKS).head()).toEqual(head);
  const groups = groupsOf(run);
  expect(groups.length).toBe(training.groups_opened);
  expectCounted(run, groups);
  expectGates(run, groups);
  expectWholeOnce(groups);
}

/** The counters of the head agree with the rows. */
function expectCounted({ training }: TrainingByHand, groups: readonly TrainGroup[]): void {
  const of = (state: string) => groups.filter((group) => group.state === state);
  const sum = (rows: readonly TrainGroup[], of: (row: TrainGroup) => number) =>
    rows.reduce((total, row) => total + of(row), 0);
  const dropped: Record<string, number> = {};
  for (const { reason } of of("dropped")) dropped[reason ?? ""] = (dropped[reason ?? ""] ?? 0) + 1;
  const buffered = of("buffered");
  expect(training).toMatchObject({
    groups_open: of("open").length,
    shipped: of("shipped").length,
    dropped,
    buffered: {
      groups: buffered.length,
      rollouts: sum(buffered, ({ rollouts }) => rollouts),
      samples: sum(buffered, ({ samples }) => samples),
      tokens: sum(buffered, ({ tokens }) => tokens),
      bytes: sum(buffered, ({ bytes }) => bytes),
    },
  });
}

/** Checks lead, staleness and order of what was shipped. */
function expectGates({ store, spec, training }: TrainingByHand, groups: readonly TrainGroup[]) {
  const { lead = 0, max_off_policy_steps = 0, max_steps = 0 } = spec.training ?? {};
  expect(training.step - 1 - training.trainer.published).toBeLessThanOrEqual(lead + 1);
  expect(training.step).toBeLessThanOrEqual(max_steps + 1);
  const waiting = groups.filter(({ state }) => state === "buffered");
  for (const { dispatch_version } of waiting) {
    expect(dispatch_version).toBeGreaterThanOrEqual(training.step - 1 - max_off_policy_steps);
  }
  const live = store.training.batchesBetween(0, 1000);
  expect(live.map(({ step }) => step)).toEqual(live.map((_, index) => index + 1));
  expect(live.length).toBe(training.step - 1);
  for (const { step, batch_id, groups: count } of live) {
    const shipped = groups.filter((group) => group.step === step && group.state === "shipped");
    expect([batch_id, shipped.length]).toEqual([batch_id, count]);
    for (const { dispatch_version } of shipped) {
      expect(dispatch_version).toBeGreaterThanOrEqual(step - 1 - max_off_policy_steps);
      expect(dispatch_version).toBeLessThan(step);
    }
  }
}

/** Complete groups are numbered once, without gaps; an open one has no number. */
function expectWholeOnce(groups: readonly TrainGroup[]): void {
  const whole = groups.flatMap(({ position }) => position ?? []).sort((a, b) => a - b);
  expect(whole).toEqual(whole.map((_, at) => at + 1));
  const numbered = groups.filter(({ position }) => position !== null);
  expect(numbered.map(({ state }) => state)).not.toContain("open");
  const kept = groups.filter(({ state }) => state === "buffered" || state === "shipped");
  expect(kept.filter(({ position }) => position === null)).toEqual([]);
}

function groupsOf(run: TrainingByHand): TrainGroup[] {
  const { groups_opened } = run.training;
  return Array.from({ length: groups_opened }, (_, index) => {
    const group = run.store.training.group(index);
    if (group === null) throw new Error(`group ${index} is missing`);
    return group;
  });
}

/** All rollouts report, and the trainer trains what is ready. */
function finish(run: TrainingByHand): void {
  for (let round = 0; round < 60 && run.store.head().settled_at === null; round += 1) {
    run.dispatch();
    run.settleGroups();
    run.cut();
    run.train();
    if (run.trainer.published < run.trainer.acked_step) {
      run.tell({ published: run.trainer.acked_step });
    }
  }
}

type Open = () => Promise<TrainingByHand>;

async function holds(run: (open: Open, happenings: readonly Happening[]) => Promise<void>) {
  const stub = env.RUN.getByName(crypto.randomUUID());
  await inside(stub, RunObject, (_, { storage }) =>
    fc.assert(
      fc.asyncProperty(shape, fc.array(event, { maxLength: 60 }), (given, happenings) => {
        const open = async () => {
          await storage.deleteAll();
          return new TrainingByHand(storage, given);
        };
        return run(open, happenings);
      }),
      { numRuns: 20 },
    ),
  );
}

/** All groups and batches, from the rows. */
function recordOf(run: TrainingByHand) {
  return [groupsOf(run), run.store.training.batchesBetween(0, 1000), run.training];
}

test("the same events again give the same groups, credits and batches, whenever it was restarted", async () => {
  await holds(async (open, happenings) => {
    const first = await open();
    for (const happening of happenings) apply(first, happening);
    const before = recordOf(first);
    const second = await open();
    for (const happening of happenings) {
      apply(second, happening);
      second.restart();
    }
    expect(recordOf(second)).toEqual(before);
  });
});

test("after any order of events groups, batches and counters agree, nothing too old ships, and the lead stays bounded", async () => {
  await holds(async (open, happenings) => {
    const run = await open();
    for (const happening of happenings) {
      apply(run, happening);
      check(run);
    }
  });
});

test("after any history, once all rollouts report every step is trained and the run is completed", async () => {
  await holds(async (open, happenings) => {
    const run = await open();
    for (const happening of happenings) apply(run, happening);
    finish(run);
    check(run);
    const { status, error, in_flight, settled_at } = run.store.head();
    expect({ status, error, in_flight }).toEqual({
      ...{ status: "completed", error: null, in_flight: 0 },
    });
    expect(settled_at).not.toBeNull();
    expect(run.training.trainer.acked_step).toBe(run.spec.training?.max_steps);
  });
});

test("a run that is cancelled at any moment ends once what is in flight has reported", async () => {
  await holds(async (open, happenings) => {
    const run = await open();
    for (const happening of happenings) apply(run, happening);
    requestCancel(run.store, run.spec, "user", run.now);
    for (const row of run.rows("running")) run.answer(row, { ...RIGHT, cancelled: "user" });
    const waiting = run.rows("scoring").map(({ group_index }) => group_index);
    expect(run.store.head().running).toBe(0);
    if (waiting.length === 0) expect(run.store.head().settled_at).not.toBeNull();
  });
});
