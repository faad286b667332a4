/** Both sides of the leases of runs and their endpoint, as pure functions on one clock. Messages may be lost. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  ask,
  dropExpired,
  type EndpointLimits,
  type EndpointState,
  LEASE_MS,
  newEndpoint,
  nextEndpointAlarm,
  noteNotified,
  RENEW_MS,
  toNotify,
} from "../../../src/kernel/endpoint/lease-state.ts";
import {
  afterDispatch,
  afterEnd,
  askAt,
  beginAsk,
  type LeaseState,
  leaseRemaining,
  leaseStatusReason,
  NEW_LEASE,
  paceAt,
  takeLease,
  undoAsk,
} from "../../../src/kernel/endpoint/run-lease.ts";
import type { GrantedLease, LeaseAsk, Need } from "../../../src/kernel/messages/endpoint-wire.ts";
import type { RolloutReport } from "../../../src/kernel/messages/wire.ts";

const ENDED: RolloutReport = {
  ...{ group: 0, slot: 0, attempt: 0, rollout_id: "ro_1", example_id: 0, task_key: "k" },
  ...{ failure: null, cancelled: null, error: null, stop_run: null, digest: "d", bytes: 1 },
  ...{ trajectory: null, stop_condition: null, is_truncated: false, turns: 1, calls: 1 },
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  ...{ started_at: 0, ended_at: 0 },
};

/** One run: its work, and its side of the lease. */
class Run {
  gate: LeaseState = NEW_LEASE;
  running = 0;
  /** A request that was sent, and the grant if it arrived. */
  sent: { readonly asked: LeaseAsk; readonly grant: GrantedLease | null } | null = null;
  readonly id: string;
  readonly org: string;
  readonly most: number;
  pending: number;

  constructor(id: string, org: string, pending: number, most: number) {
    this.id = id;
    this.org = org;
    this.pending = pending;
    this.most = most;
  }

  get need(): Need {
    const { running, pending, most } = this;
    const wants = pending === 0 ? running : Math.max(running, Math.min(most, running + pending));
    return { running, wants, more: pending > 0 };
  }

  get done(): boolean {
    return this.running === 0 && this.pending === 0;
  }

  dispatch(now: number): number {
    const room = Math.min(this.most - this.running, this.pending, leaseRemaining(this.gate, this.running, now));
    const count = Math.max(0, room);
    this.running += count;
    this.pending -= count;
    this.gate = afterDispatch(this.gate, count, now);
    return count;
  }

  end(now: number, report: Partial<RolloutReport> = {}): void {
    if (this.running === 0) return;
    this.running -= 1;
    this.gate = afterEnd(this.gate, { ...ENDED, ...report }, now);
  }
}

class World {
  now = 1_000_000;
  state: EndpointState;
  readonly runs: Run[];

  constructor(limits: EndpointLimits, runs: Run[]) {
    this.state = newEndpoint(limits);
    this.runs = runs;
  }

  get running(): number {
    return this.runs.reduce((sum, { running }) => sum + running, 0);
  }

  send(run: Run): void {
    const at = askAt(run.gate, run.need, this.now);
    if (run.sent !== null || at === null || at > this.now) return;
    const scope = { orgId: run.org, projectId: "pj" };
    const { outcomes } = run.gate;
    const names = { endpoint_id: "ep", run_id: run.id, model: "m" };
    const asked = { scope, ...names, ...run.need, outcomes };
    run.gate = beginAsk(run.gate, run.need, this.now);
    run.sent = { asked, grant: null };
  }

  arrive(run: Run): void {
    if (run.sent === null || run.sent.grant !== null) return;
    const { state, grant: grantedLease } = ask(this.state, run.sent.asked, this.now);
    this.state = state;
    run.sent = { ...run.sent, grant: grantedLease };
  }

  answer(run: Run, lost = false): void {
    if (run.sent === null) return;
    const { asked, grant: grantedLease } = run.sent;
    run.gate =
      lost || grantedLease === null ? undoAsk(run.gate, asked.outcomes) : takeLease(run.gate, grantedLease, this.now);
    run.sent = null;
  }

  ask(run: Run): void {
    this.send(run);
    this.arrive(run);
    this.answer(run);
  }

  /** The endpoint's object does this after every change. */
  tell(): void {
    const ids = toNotify(this.state, this.now);
    this.state = noteNotified(this.state, ids, this.now);
    for (const run of this.runs) {
      if (ids.includes(run.id)) run.gate = { ...run.gate, changed: true };
    }
  }

  /** One second: every run does what is due, and ends this many rollouts. */
  second(ends: number): void {
    this.now += 1000;
    this.state = dropExpired(this.state, this.now);
    for (const run of this.runs) {
      for (let count = 0; count < ends; count += 1) run.end(this.now);
      this.ask(run);
      run.dispatch(this.now);
      this.tell();
    }
  }
}

const NO_LIMITS: EndpointLimits = { max_concurrent: null, rpm: null };

type Step = readonly [what: "dispatch" | "end" | "send" | "arrive" | "answer" | "lose" | "tick", run: number];
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.tuple(fc.constantFrom("dispatch", "end", "send", "arrive", "answer", "lose", "tick"), fc.nat(2)),
  { maxLength: 200 },
);

function take(world: World, [what, index]: Step): void {
  const run = world.runs[index];
  if (run === undefined) return;
  if (what === "dispatch") run.dispatch(world.now);
  if (what === "end") run.end(world.now);
  if (what === "send") world.send(run);
  if (what === "arrive") world.arrive(run);
  if (what === "answer") world.answer(run);
  if (what === "lose") world.answer(run, true);
  if (what === "tick") world.now += 1000;
  world.tell();
}

test("however requests cross and get lost, concurrent rollouts never exceed the endpoint's max_concurrent, and all get done", () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 12 }), (order, max_concurrent) => {
      const runs = [new Run("run_1", "a", 30, 8), new Run("run_2", "a", 30, 5), new Run("run_3", "b", 30, 20)];
      const world = new World({ max_concurrent, rpm: null }, runs);
      for (const step of order) {
        take(world, step);
        expect(world.running).toBeLessThanOrEqual(max_concurrent);
        for (const run of runs) expect(run.running).toBeLessThanOrEqual(run.most);
      }
      for (let seconds = 0; seconds < 400 && !runs.every(({ done }) => done); seconds += 1) {
        for (const run of runs) world.answer(run, true);
        world.second(1);
        expect(world.running).toBeLessThanOrEqual(max_concurrent);
      }
      expect(runs.filter(({ done }) => !done)).toEqual([]);
    }),
  );
});

test("during its request a run dispatches no more than it reported: another run may have the rest by now", () => {
  const first = new Run("run_1", "a", 100, 10);
  const second = new Run("run_2", "b", 100, 10);
  const world = new World({ max_concurrent: 10, rpm: null }, [first, second]);
  world.ask(first);
  first.dispatch(world.now);
  world.ask(second);
  world.tell();
  for (let ends = 0; ends < 8; ends += 1) first.end(world.now);
  world.now += 1000;
  world.send(first);
  world.arrive(first);
  world.tell();
  first.dispatch(world.now);
  world.ask(second);
  second.dispatch(world.now);
  expect([first.running, second.running]).toEqual([2, 5]);
  world.answer(first);
  first.dispatch(world.now);
  expect([first.running, second.running]).toEqual([5, 5]);
});

test("a later run gets its share as the first one's rollouts end, in blocks and not one by one", () => {
  const first = new Run("run_1", "a", 1000, 40);
  const second = new Run("run_2", "b", 1000, 40);
  const world = new World({ max_concurrent: 40, rpm: null }, [first]);
  world.second(0);
  expect(first.running).toBe(40);
  world.runs.push(second);
  let asks = 0;
  for (let seconds = 0; seconds < 5; seconds += 1) {
    const before = world.runs.map(({ gate }) => gate.asked_at);
    world.second(20);
    asks += world.runs.filter(({ gate }, at) => gate.asked_at !== before[at]).length;
  }
  expect([first.running, second.running]).toEqual([20, 20]);
  expect(asks).toBeLessThan(8);
  const settled = world.runs.map(({ gate }) => gate.asked_at);
  for (let seconds = 0; seconds < 20; seconds += 1) world.second(5);
  expect(world.runs.map(({ gate }) => gate.asked_at)).toEqual(settled);
});

test("A3: a run that vanished holds its lease until it expires, and no longer", () => {
  const gone = new Run("run_1", "a", 1000, 10);
  const other = new Run("run_2", "b", 1000, 10);
  const world = new World({ max_concurrent: 10, rpm: null }, [gone]);
  world.second(0);
  world.runs.splice(0, 1, other);
  world.second(0);
  expect(other.running).toBe(0);
  world.now += LEASE_MS - 5000;
  world.second(0);
  expect(other.running).toBe(0);
  world.now += 5000;
  for (let seconds = 0; seconds < 3; seconds += 1) world.second(0);
  expect(other.running).toBe(10);
});

test("a run whose lease expired dispatches nothing until it has asked again", () => {
  const run = new Run("run_1", "a", 1000, 10);
  const world = new World(NO_LIMITS, [run]);
  world.ask(run);
  expect(leaseRemaining(run.gate, 0, world.now)).toBe(10);
  expect(leaseRemaining(run.gate, 0, world.now + LEASE_MS)).toBe(0);
});

test("on an endpoint without limits a run asks once, and then only to renew its lease", () => {
  const run = new Run("run_1", "a", 100_000, 100);
  const world = new World(NO_LIMITS, [run, new Run("run_2", "b", 100_000, 100)]);
  world.second(0);
  const { asked_at } = run.gate;
  for (let seconds = 0; seconds < 200; seconds += 1) world.second(50);
  expect(run.gate.asked_at).toBe(asked_at);
  expect(askAt(run.gate, run.need, world.now)).toBe(asked_at + RENEW_MS);
  expect(run.running).toBe(100);
});

test("a run that is done leaves, and the endpoint forgets it", () => {
  const run = new Run("run_1", "a", 3, 10);
  const world = new World(NO_LIMITS, [run]);
  for (let seconds = 0; seconds < 4; seconds += 1) world.second(3);
  expect([...world.state.runs]).toEqual([]);
  expect(nextEndpointAlarm(world.state, world.now)).toBeNull();
  expect(askAt(run.gate, run.need, world.now)).toBeNull();
});

test("under a rate limit calls stay within rpm and a tenth of a minute's burst, however many a rollout makes", () => {
  const one = new Run("run_1", "a", 100_000, 1000);
  const two = new Run("run_2", "b", 100_000, 1000);
  const world = new World({ max_concurrent: null, rpm: 600 }, [one, two]);
  const started = world.now;
  let calls = 0;
  for (let seconds = 0; seconds < 600; seconds += 1) {
    world.now += 1000;
    for (const run of world.runs) {
      world.ask(run);
      while (run.running > 0) {
        run.end(world.now, { calls: 3, turns: 3 });
        calls += 3;
      }
      run.dispatch(world.now);
      world.tell();
    }
    const minutes = (world.now - started) / 60_000;
    // Until a rollout has ended each is counted as one call.
    expect(calls).toBeLessThanOrEqual(600 * minutes + 3 * 120);
  }
  expect(calls).toBeGreaterThan(600 * 10 * 0.95);
  expect(one.gate.grant?.rate).toBe(300);
});

test("under a rate limit the bucket of an idle run fills for six seconds, and no longer", () => {
  const run = new Run("run_1", "a", 1000, 1000);
  const world = new World({ max_concurrent: null, rpm: 600 }, [run]);
  world.ask(run);
  const after = (seconds: number) => leaseRemaining(run.gate, run.running, world.now + 1000 * seconds);
  expect([after(3), after(6), after(7), after(600)]).toEqual([30, 60, 60, 60]);
});

test("a run that waits for its rate limit shows that, and wakes once a block of calls is available", () => {
  const run = new Run("run_1", "a", 100, 50);
  const world = new World({ max_concurrent: null, rpm: 60 }, [run]);
  world.ask(run);
  run.dispatch(world.now);
  const at = paceAt(run.gate, run.need, world.now) ?? 0;
  expect(at).toBeGreaterThanOrEqual(world.now + 900);
  expect(leaseStatusReason(run.gate, run.running, world.now)).toMatchObject({ state: "rate_limited" });
  expect(leaseRemaining(run.gate, run.running, at)).toBe(1);
});

test("in an hour a waiting run has no alarm except the renewals of its lease", () => {
  const holder = new Run("run_1", "a", 10, 10);
  const waiter = new Run("run_2", "a", 10, 10);
  const world = new World({ max_concurrent: 1, rpm: null }, [holder, waiter]);
  world.second(0);
  world.second(0);
  expect([holder.running, waiter.running]).toEqual([1, 0]);
  const end = world.now + 3600_000;
  const alarms: number[] = [];
  while (world.now < end) {
    const next = [askAt(waiter.gate, waiter.need, world.now), paceAt(waiter.gate, waiter.need, world.now)];
    world.now = Math.max(world.now, Math.min(...next.filter((at) => at !== null)));
    alarms.push(world.now);
    world.ask(waiter);
    world.now = Math.max(world.now, askAt(holder.gate, holder.need, world.now) ?? 0);
    world.ask(holder);
  }
  const waits = alarms.map((at, index) => at - (alarms[index - 1] ?? 0)).slice(1);
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(60_000);
  expect(leaseStatusReason(waiter.gate, 0, world.now)).toMatchObject({ state: "rate_limited" });
});

test("a run that holds more than its share is notified, and again after 10 s until it asks", () => {
  const asked = (run_id: string, running: number) => ({
    ...{ scope: { orgId: "org", projectId: "pj" }, endpoint_id: "ep", run_id, model: "m" },
    ...{ running, wants: 4, more: true, outcomes: NEW_LEASE.outcomes },
  });
  const first = ask(newEndpoint({ max_concurrent: 4, rpm: null }), asked("run_a", 0), 1000);
  expect(first.grant.permits).toBe(4);
  const { state } = ask(first.state, asked("run_b", 0), 2000);
  expect(toNotify(state, 2000)).toEqual(["run_a"]);
  const told = noteNotified(state, ["run_a"], 2000);
  expect(toNotify(told, 11_999)).toEqual([]);
  expect(nextEndpointAlarm(told, 2000)).toBe(12_000);
  expect(toNotify(told, 12_000)).toEqual(["run_a"]);
  expect(toNotify(ask(told, asked("run_a", 2), 12_000).state, 12_000)).not.toContain("run_a");
});

test("a report that was lost is sent again, with the outcomes since", () => {
  const failed = { failure: "provider", turns: 0, error: { message: "503", retryable: true } } as const;
  const met = { ...ENDED, ...failed, error: { error: "ModelError", ...failed.error } };
  let lease = afterEnd(afterEnd(NEW_LEASE, met, 1000), met, 1000);
  const { outcomes } = lease;
  expect(outcomes.streak).toBe(2);
  lease = beginAsk(lease, { running: 1, wants: 1, more: true }, 1000);
  lease = undoAsk(afterEnd(lease, met, 2000), outcomes);
  expect(lease).toMatchObject({ misses: 1, outcomes: { streak: 3, error: "503" } });
});

test("a fleet grants as many rollouts as its replicas allow, and its own circuit stays closed whatever its rollouts met", () => {
  const run = new Run("run_1", "org", 20, 20);
  const world = new World({ max_concurrent: 6, rpm: null, fleet: { down: null } }, [run]);
  world.ask(run);
  expect(run.dispatch(world.now)).toBe(6);
  const error = { error: "ModelError", message: "down", retryable: true, error_chain_str: "", error_chain_repr: "" };
  for (let at = 0; at < 6; at += 1) run.end(world.now, { failure: "provider", error });
  for (let at = 0; at < 3; at += 1) {
    world.now += 2000;
    world.ask(run);
    run.dispatch(world.now);
    for (let ended = 0; ended < 6; ended += 1) run.end(world.now, { failure: "provider", error });
  }
  expect(world.state.health.outage).toBeNull();
});

test("a fleet without a replica that takes calls grants nothing, shows why, and is asked again", () => {
  const run = new Run("run_1", "org", 5, 5);
  const down = { max_concurrent: 0, rpm: null, fleet: { down: "no replica of the fleet takes calls: rp_1 is down" } };
  const world = new World(down, [run]);
  world.ask(run);
  expect(run.dispatch(world.now)).toBe(0);
  expect(leaseStatusReason(run.gate, 0, world.now)).toEqual({ state: "endpoint_down", reason: down.fleet.down });
  expect(nextEndpointAlarm(world.state, world.now)).toBe(world.now + 20_000);
  world.state = { ...world.state, limits: { max_concurrent: 2, rpm: null, fleet: { down: null } } };
  world.tell();
  world.now += 2000;
  world.ask(run);
  expect(run.dispatch(world.now)).toBe(2);
});
