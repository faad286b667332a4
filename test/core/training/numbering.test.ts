import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Admission,
  batchRollouts,
  capacityOf,
  isFresh,
  leadOf,
  minFreshVersion,
  newestPossible,
  offPolicyLag,
  withinLead,
} from "../../../src/core/training/numbering.ts";

const TARGET_LEAD = 1;
const MAX_OFF_POLICY = 2;

test.each([
  { event: "start", step: 1, published: 0, lead: 0, open: true, oldest: -2 },
  { event: "ship batch 1", step: 2, published: 0, lead: 1, open: true, oldest: -1 },
  { event: "ship batch 2", step: 3, published: 0, lead: 2, open: false, oldest: 0 },
  { event: "batch 3 full, held", step: 3, published: 0, lead: 2, open: false, oldest: 0 },
  { event: "publish version 1", step: 3, published: 1, lead: 1, open: true, oldest: 0 },
  { event: "ship batch 3", step: 4, published: 1, lead: 2, open: false, oldest: 1 },
])("after '$event' lead, gate and oldest version are those of the worked table", (row) => {
  const { step, published } = row;
  expect(leadOf({ step, published })).toBe(row.lead);
  expect(withinLead({ step, published }, TARGET_LEAD)).toBe(row.open);
  expect(minFreshVersion(step, MAX_OFF_POLICY)).toBe(row.oldest);
  expect(isFresh(row.oldest, step, MAX_OFF_POLICY)).toBe(true);
  expect(isFresh(row.oldest - 1, step, MAX_OFF_POLICY)).toBe(false);
});

test("lag is counted from the version that began to sample, and divided by when the updates came", () => {
  expect(offPolicyLag(5, { start: 2, end: 3 })).toEqual({ total: 2, in_flight: 1, in_queue: 1 });
  expect(offPolicyLag(5, { start: 4, end: 6 })).toEqual({ total: 0, in_flight: 0, in_queue: 0 });
  expect(offPolicyLag(3, { start: 1, end: 5 })).toEqual({ total: 1, in_flight: 1, in_queue: 0 });
  expect(offPolicyLag(1, { start: 3, end: 2 })).toEqual({ total: 0, in_flight: 0, in_queue: 0 });
});

const now: Admission = {
  step: 1,
  max_steps: 100,
  version: 0,
  published: 0,
  lead: 9,
  max_off_policy_steps: 2,
  batch_rollouts: 10,
  buffered: 0,
  running: 0,
  max_concurrent: 1000,
};

test("no more rollouts start than can train while they are fresh", () => {
  expect(capacityOf(now)).toBe(30);
  expect(capacityOf({ ...now, buffered: 4, running: 8 })).toBe(18);
  expect(capacityOf({ ...now, step: 3 })).toBe(10);
  expect(capacityOf({ ...now, step: 3, version: 1 })).toBe(20);
  expect(capacityOf({ ...now, step: 4, buffered: 3 })).toBe(0);
});

test("no rollout starts for a batch that could not ship yet, whatever staleness is allowed", () => {
  const pace = { ...now, lead: 1, max_off_policy_steps: 8 };
  expect(capacityOf(pace)).toBe(20);
  expect(capacityOf({ ...pace, lead: 0 })).toBe(10);
  expect(capacityOf({ ...pace, step: 2, buffered: 4, running: 3 })).toBe(3);
  expect(capacityOf({ ...pace, step: 3 })).toBe(0);
  expect(capacityOf({ ...pace, step: 3, published: 1 })).toBe(10);
});

test("no more rollouts start than may run at once, or than the remaining steps need", () => {
  expect(capacityOf({ ...now, max_concurrent: 12, running: 8 })).toBe(4);
  const last = { ...now, published: 99, version: 99 };
  expect(capacityOf({ ...last, step: 100, buffered: 3, running: 2 })).toBe(5);
  expect(capacityOf({ ...last, step: 101 })).toBe(0);
});

test("capacity equals AReaL's formula if batches are full and the lead is not the bound", () => {
  const counts = fc.nat({ max: 40 });
  fc.assert(
    fc.property(counts, counts, counts, counts, fc.nat({ max: 8 }), (cut, ahead, buffered, running, M) => {
      const version = Math.max(0, cut - ahead);
      const accepted = cut * 10 + buffered;
      const areal = Math.min(1000 - running, (M + version + 1) * 10 - (accepted + running));
      const ours = { ...now, step: cut + 1, version, lead: 100, buffered, running, max_off_policy_steps: M };
      expect(capacityOf(ours)).toBe(Math.max(0, areal));
    }),
  );
});

type Event = "begin" | "finish" | "publish" | "ship";

/** Groups of one rollout, batches of one group, and the same conditions as in a run. */
class Loop {
  progress = { step: 1, published: 0 };
  readonly shipped: { readonly step: number; readonly version: number }[] = [];
  #running: number[] = [];
  #buffer: number[] = [];
  readonly #lead: number;
  readonly #bound: number;

  constructor(lead: number, bound: number) {
    this.#lead = lead;
    this.#bound = bound;
  }

  readonly events: Record<Event, () => void> = {
    begin: () => {
      if (withinLead(this.progress, this.#lead)) this.#running.push(this.progress.published);
    },
    finish: () => this.#buffer.push(...this.#running.splice(0, 1)),
    publish: () => {
      const { step, published } = this.progress;
      if (leadOf(this.progress) > 0) this.progress = { step, published: published + 1 };
    },
    ship: () => {
      const { step, published } = this.progress;
      if (!withinLead(this.progress, this.#lead)) return;
      const [version, ...left] = this.#buffer.filter((one) => isFresh(one, step, this.#bound));
      this.#buffer = left;
      if (version === undefined) return;
      this.shipped.push({ step, version });
      this.progress = { step: step + 1, published };
    },
  };
}

test("in any order of events, no batch exceeds the lead, and no rollout the bound of staleness", () => {
  const event = fc.constantFrom<Event>("begin", "finish", "publish", "ship");
  const bounds = fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 3 }));
  fc.assert(
    fc.property(bounds, fc.array(event, { maxLength: 200 }), ([lead, bound], events) => {
      const loop = new Loop(lead, bound);
      for (const what of events) {
        loop.events[what]();
        expect(leadOf(loop.progress)).toBeLessThanOrEqual(lead + 1);
      }
      for (const { step, version } of loop.shipped) {
        expect(offPolicyLag(step, { start: version, end: version }).total).toBeLessThanOrEqual(bound);
      }
    }),
  );
});

test("a batch counted in tokens needs as many rollouts as estimated from those so far", () => {
  expect(batchRollouts({ rollouts: 128 }, { rollouts: 0, tokens: 0 }, 8)).toBe(128);
  expect(batchRollouts({ tokens: 1000 }, { rollouts: 0, tokens: 0 }, 8)).toBe(8);
  expect(batchRollouts({ tokens: 1000 }, { rollouts: 10, tokens: 300 }, 8)).toBe(34);
  expect(batchRollouts({ tokens: 10 }, { rollouts: 10, tokens: 3000 }, 8)).toBe(1);
});

test("no weights are newer than the last acknowledged batch, or than one after the published version", () => {
  expect(newestPossible({ published: 0, acked_step: 0 })).toBe(1);
  expect(newestPossible({ published: 4, acked_step: 4 })).toBe(5);
  expect(newestPossible({ published: 4, acked_step: 5 })).toBe(5);
  expect(newestPossible({ published: 1, acked_step: 3 })).toBe(3);
});
