/** Both sides of the leases of runs and their organisation, as pure functions on one clock. Messages may be lost. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type AccountLeaseState,
  askLeases,
  dropExpiredRuns,
  grantedRollouts,
  nextLeaseAlarm,
  noteRunsNotified,
  runsToNotify,
  UPGRADING,
} from "../../../src/kernel/account/lease-state.ts";
import { LeaseKeeper, type LeaseSlot, noteChanged } from "../../../src/kernel/endpoint/lease-keeper.ts";
import { type LeaseState, leaseRemaining, NEW_LEASE } from "../../../src/kernel/endpoint/run-lease.ts";
import type { Need } from "../../../src/kernel/messages/endpoint-wire.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const scope = { orgId: "org", projectId: "pj" };

const NOTHING = { running: 0, wants: 0, more: false };

class Organization {
  now = MINUTE;
  asks = 0;
  state: AccountLeaseState;

  constructor(rollouts: number, messages = 1000) {
    this.state = { limits: { rollouts, messages, judgements: 1000 }, runs: {} };
  }

  limit(rollouts: number): void {
    this.state = { ...this.state, limits: { ...this.state.limits, rollouts } };
  }

  drain(upgrading: boolean, rollouts: number): void {
    this.limit(upgrading ? 0 : rollouts);
    this.state = { ...this.state, upgrading };
  }

  /** Notifies runs, as the object does after each change. */
  tell(runs: readonly Run[]): void {
    this.state = dropExpiredRuns(this.state, this.now);
    const told = runsToNotify(this.state, this.now);
    this.state = noteRunsNotified(this.state, told, this.now);
    for (const run of runs) if (told.includes(run.id)) run.changed();
  }
}

type Loss = "none" | "ask" | "answer" | "run";
const LOSSES = ["none", "none", "ask", "answer", "run"] as const;

class Run {
  readonly id: string;
  pending: number;
  running = 0;
  messages: Need;
  readonly #org: Organization;
  readonly #leases: [LeaseState, LeaseState] = [NEW_LEASE, NEW_LEASE];
  #keeper: LeaseKeeper;

  constructor(org: Organization, id: string, pending: number, messages: Partial<Need> = {}) {
    this.#org = org;
    this.id = id;
    this.pending = pending;
    this.messages = { running: 0, wants: 0, more: false, ...messages };
    this.#keeper = new LeaseKeeper(() => org.now);
  }

  #slot(index: 0 | 1): LeaseSlot {
    return {
      read: () => this.#leases[index],
      write: (lease) => {
        this.#leases[index] = lease;
      },
    };
  }

  get rolloutLease(): LeaseState {
    return this.#leases[0];
  }

  get messageLease(): LeaseState {
    return this.#leases[1];
  }

  get room(): number {
    return Math.min(this.pending, leaseRemaining(this.#leases[0], this.running, this.#org.now));
  }

  changed(): void {
    noteChanged(this.#slot(0));
    noteChanged(this.#slot(1));
  }

  /** Its object dies and restarts: only what is on disk remains. */
  restart(): void {
    this.#keeper = new LeaseKeeper(() => this.#org.now);
  }

  #needs() {
    const rollouts = { running: this.running, wants: this.running + this.pending, more: this.pending > 0 };
    return [
      { slot: this.#slot(0), need: rollouts },
      { slot: this.#slot(1), need: this.messages },
    ];
  }

  get nextAt(): number | null {
    return this.#keeper.nextAt(this.#needs());
  }

  /** `run`: its object dies while the answer is on its way. */
  async ask(loss: Loss = "none", meanwhile: () => void = () => undefined): Promise<void> {
    const asked = this.#ask(loss);
    meanwhile();
    if (loss === "run") this.restart();
    else await asked;
  }

  async #ask(loss: Loss): Promise<void> {
    await this.#keeper.renew(this.#needs(), { run_id: this.id }, async ([rollouts, messages]) => {
      if (rollouts === undefined || messages === undefined) throw new Error("asked for nothing");
      if (loss === "ask") throw new Error("lost by the test");
      const org = this.#org;
      org.asks += 1;
      const { state, grants: grantedLeases } = askLeases(
        org.state,
        { scope, run_id: this.id, rollouts, messages, judgements: NOTHING },
        org.now,
      );
      org.state = state;
      if (loss === "answer") throw new Error("lost by the test");
      if (loss === "run") await new Promise(() => undefined);
      return [grantedLeases.rollouts, grantedLeases.messages];
    });
  }

  dispatch(): void {
    const { room } = this;
    this.running += room;
    this.pending -= room;
  }

  end(count: number): void {
    this.running -= Math.min(count, this.running);
  }
}

const HAPPENED = ["dispatches", "ends", "grows", "stops", "restarts", "waits"] as const;
const HAPPENINGS: Record<(typeof HAPPENED)[number], (run: Run) => void> = {
  dispatches: (run) => run.dispatch(),
  ends: (run) => run.end(2),
  grows: (run) => {
    run.pending += 3;
  },
  stops: (run) => {
    run.pending = 0;
  },
  restarts: (run) => run.restart(),
  waits: () => undefined,
};

async function second(org: Organization, runs: readonly Run[]): Promise<void> {
  org.now += SECOND;
  for (const run of runs) {
    await run.ask();
    run.dispatch();
    org.tell(runs);
  }
}

test("two runs of an organisation share its rollouts evenly, and what one leaves the other gets", async () => {
  const org = new Organization(10);
  const runs = [new Run(org, "run_1", 100), new Run(org, "run_2", 100)] as const;
  await second(org, runs.slice(0, 1));
  expect(runs[0].running).toBe(10);
  for (let at = 0; at < 8; at += 1) {
    runs[0].end(1);
    await second(org, runs);
  }
  expect(runs.map(({ running }) => running)).toEqual([5, 5]);
  runs[1].pending = 0;
  runs[1].end(5);
  await second(org, runs);
  await second(org, runs);
  expect(runs.map(({ running }) => running)).toEqual([10, 0]);
});

test("whichever requests and answers are lost and whichever objects die, all runs together never exceed the organisation's limit", async () => {
  const step = fc.record({
    run: fc.nat(2),
    act: fc.constantFrom(...HAPPENED),
    loss: fc.constantFrom<Loss>(...LOSSES),
    passes: fc.constantFrom(0, 500, SECOND, 10 * SECOND, 4 * MINUTE, 16 * MINUTE),
  });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 60 }), async (limit, steps) => {
      const org = new Organization(limit);
      const runs = ["run_1", "run_2", "run_3"].map((id) => new Run(org, id, 20));
      for (const { run: index, act, loss, passes } of steps) {
        const run = runs[index];
        if (run === undefined) continue;
        org.now += passes;
        HAPPENINGS[act](run);
        org.tell(runs);
        await run.ask(loss);
        run.dispatch();
        // The only way beyond the limit: a lease expired while its rollouts went on, so they are not counted any more.
        if (runs.some(({ id, running }) => running > 0 && org.state.runs[id] === undefined)) return;
        expect(runs.reduce((sum, { running }) => sum + running, 0)).toBeLessThanOrEqual(limit);
      }
    }),
  );
});

test("whatever was lost, a run that has ended asks until it gets an answer, and then holds nothing and asks no more", async () => {
  const step = fc.record({
    act: fc.constantFrom(...HAPPENED),
    loss: fc.constantFrom<Loss>(...LOSSES),
    passes: fc.constantFrom(0, 500, SECOND, 10 * SECOND),
  });
  const losses = fc.array(fc.constantFrom<Loss>("ask", "answer", "run"), { maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), losses, async (steps, atTheEnd) => {
      const org = new Organization(8);
      const run = new Run(org, "run_1", 20, { usual: 2, wants: 2 });
      for (const { act, loss, passes } of steps) {
        org.now += passes;
        HAPPENINGS[act](run);
        await run.ask(loss);
        run.dispatch();
      }
      Object.assign(run, { pending: 0, running: 0, messages: NOTHING });
      const end = org.now;
      for (const loss of [...atTheEnd, "none"] as const) {
        org.now = Math.max(org.now, run.nextAt ?? org.now);
        await run.ask(loss);
      }
      expect({ held: org.state.runs, next: run.nextAt }).toEqual({ held: {}, next: null });
      // Only the waits after failures, not the expiry of a lease.
      expect(org.now - end).toBeLessThan(14 * MINUTE);
    }),
  );
});

test("during a request an alarm is set, since its run may die meanwhile", async () => {
  const org = new Organization(8);
  const run = new Run(org, "run_1", 4);
  await run.ask();
  Object.assign(run, { pending: 0, running: 0 });
  org.now += SECOND;
  let next: number | null = null;
  await run.ask("none", () => {
    next = run.nextAt;
  });
  expect([next, run.nextAt]).toEqual([org.now + 10 * SECOND, null]);
});

test("after any loss every waiting run has its share within seconds", async () => {
  const org = new Organization(9);
  const runs = [1, 2, 3].map((number) => new Run(org, `run_${number}`, 50));
  for (const run of runs) {
    await run.ask("answer");
    run.restart();
  }
  for (let at = 0; at < 15; at += 1) {
    for (const run of runs) run.end(1);
    await second(org, runs);
  }
  expect(runs.map(({ running }) => running)).toEqual([3, 3, 3]);
});

test("far from its limits an organisation is asked once in five minutes by each run, whatever its runs do", async () => {
  const org = new Organization(10_000);
  const usual = { usual: 8, wants: 8 };
  const runs = [new Run(org, "run_1", 3000, usual), new Run(org, "run_2", 3000, usual)];
  for (const run of runs) await run.ask();
  org.asks = 0;
  for (let at = 0; at < 20 * 60; at += 1) {
    for (const run of runs) run.end(3);
    for (const run of runs) run.messages = { ...run.messages, running: at % 8 };
    await second(org, runs);
  }
  expect(org.asks).toBeLessThanOrEqual(2 * 5);
});

test("if runs usually need more messages than there are, each has what it needs at the moment, and returns the rest", async () => {
  const org = new Organization(1000, 8);
  const first = new Run(org, "run_1", 0, { usual: 8, wants: 8 });
  const later = new Run(org, "run_2", 0, { usual: 8, wants: 8 });
  const runs = [first, later];
  await second(org, [first]);
  expect(first.messageLease.grant).toMatchObject({ permits: 8, shared: false });
  await second(org, runs);
  expect(later.messageLease.grant).toMatchObject({ shared: true, flow: { state: "over_limit" } });
  // Notified that others lack it, the first reports that it has nothing to send.
  first.messages = { running: 0, wants: 0, more: false, usual: 8 };
  for (let at = 0; at < 3; at += 1) await second(org, runs);
  expect([first, later].map(({ messageLease }) => messageLease.grant?.permits)).toEqual([0, 8]);
  first.messages = { running: 0, wants: 2, more: true, usual: 8 };
  for (let at = 0; at < 3; at += 1) await second(org, runs);
  expect([first, later].map(({ messageLease }) => messageLease.grant?.permits)).toEqual([2, 6]);
});

test("a run that holds no more than its share is notified that others lack what it does not need, and returns it", async () => {
  const org = new Organization(1000, 8);
  const first = new Run(org, "run_1", 0, { usual: 8, wants: 4 });
  const later = new Run(org, "run_2", 0, { usual: 8, wants: 8 });
  const runs = [first, later];
  await second(org, [first]);
  expect(first.messageLease.grant).toMatchObject({ permits: 4, shared: false });
  for (let at = 0; at < 2; at += 1) await second(org, runs);
  expect(first.messageLease.grant).toMatchObject({ permits: 4, shared: true });
  first.messages = { running: 0, wants: 0, more: false, usual: 8 };
  for (let at = 0; at < 3; at += 1) await second(org, runs);
  expect([first, later].map(({ messageLease }) => messageLease.grant?.permits)).toEqual([0, 8]);
});

test("a lowered limit applies to what begins from then on, and a lease that is not renewed expires", async () => {
  const org = new Organization(10);
  const run = new Run(org, "run_1", 100);
  await second(org, [run]);
  org.limit(4);
  org.tell([run]);
  await second(org, [run]);
  run.end(7);
  await second(org, [run]);
  expect(run.running).toBe(4);
  const at = nextLeaseAlarm(org.state, org.now);
  expect(at).toBeGreaterThan(org.now + 14 * MINUTE);
  org.now = at ?? 0;
  org.tell([]);
  expect(org.state.runs).toEqual({});
  expect(nextLeaseAlarm(org.state, org.now)).toBeNull();
});

test("a run is told how much its organisation may have and that other runs use it, but not which", async () => {
  const org = new Organization(3);
  const runs = [new Run(org, "run_1", 9), new Run(org, "run_2", 9)] as const;
  await second(org, [runs[0]]);
  expect(runs[0].rolloutLease.grant?.flow).toEqual({
    state: "over_limit",
    reason: "the organisation's limit is 3 rollouts at once",
  });
  await second(org, runs);
  expect(runs[1].rolloutLease.grant?.flow).toEqual({
    state: "over_limit",
    reason: "the organisation's limit is 3 rollouts at once, used by its other runs",
  });
});

test("while the deployment drains no run may start a rollout, each asks again and is told why, and afterwards each gets its part", async () => {
  const org = new Organization(6);
  const busy = new Run(org, "a", 8);
  // It samples nothing, so it holds no rollouts.
  const rescoring = new Run(org, "b", 0, { usual: 1 });
  const runs = [busy, rescoring];
  const askAll = async () => {
    org.now += SECOND;
    for (const run of runs) await run.ask();
  };
  await askAll();
  busy.dispatch();
  expect([busy.running, grantedRollouts(org.state)]).toEqual([6, 6]);
  org.drain(true, 6);
  org.tell(runs);
  busy.end(1);
  await askAll();
  expect([busy.room, busy.running, grantedRollouts(org.state)]).toEqual([0, 5, 0]);
  expect(busy.rolloutLease.grant).toMatchObject({ permits: 0, upgrading: true, flow: UPGRADING });
  expect(rescoring.messageLease.grant).toMatchObject({ permits: 0, upgrading: true });
  const late = new Run(org, "c", 3);
  await late.ask();
  expect([late.room, late.rolloutLease.grant?.flow]).toEqual([0, UPGRADING]);
  busy.end(5);
  org.drain(false, 6);
  org.tell([...runs, late]);
  await askAll();
  await late.ask();
  await askAll();
  expect([busy.room > 0, late.room > 0]).toEqual([true, true]);
  expect([busy.rolloutLease.grant?.flow, rescoring.messageLease.grant?.upgrading]).toEqual([null, undefined]);
});
