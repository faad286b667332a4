/**
 * Applies what trainers, and other parties that update replicas, report to a fleet, and decides what trainers are
 * notified of. Pure.
 *
 * Invariants. A late message undoes nothing: the later generation wins, then the later version. A run that is over
 * cannot order weights.
 */
import type { ReplicaReport, WeightOrder } from "../kernel/messages/run-fleet.ts";
import { go, type Moment, phaseOf, withInterval } from "./driving.ts";
import { servedVersion } from "./served.ts";
import { again, type FleetState, interrupts, type Replica, type TrainerNotice, withReplica } from "./state.ts";
import { voidInterval } from "./version-intervals.ts";
import type { Weights } from "./weights.ts";

/** The most runs that train their own adapters on one fleet. */
const RUNS_AT_ONCE = 64;

export function isLater(one: Weights, other: Weights): boolean {
  return one.generation > other.generation || (one.generation === other.generation && one.version > other.version);
}

export function takeOrder(before: FleetState, order: WeightOrder, now: number): FleetState {
  if (before.released.includes(order.run_id)) return before;
  const known = before.orders.find(({ run_id }) => run_id === order.run_id);
  const same = known?.generation === order.generation && known.version === order.version;
  const reported = known?.location === null && order.location !== null;
  const anew = same && (order.epoch > known.epoch || reported);
  if (known !== undefined && !isLater(order, known) && !anew) return before;
  const others = interrupts(before.update) ? [] : before.orders.filter(({ run_id }) => run_id !== order.run_id);
  const orders = [...others, order].slice(-RUNS_AT_ONCE);
  return shownAnew({ ...before, orders }, now);
}

/** The run is over: a late order of it is ignored. As many ended runs are remembered as may train at the same time. */
export function runOver(before: FleetState, run_id: string, now: number): FleetState {
  let state = orderGone(before, run_id, now);
  for (const { id, claimed } of Object.values(before.replicas)) {
    if (claimed?.run_id === run_id) state = withReplica(state, id, { claimed: null }, now);
  }
  if (before.released.includes(run_id)) return state;
  return { ...state, released: [...before.released, run_id].slice(-RUNS_AT_ONCE) };
}

/** The run no longer needs the weights that it ordered. */
export function orderGone(before: FleetState, run_id: string, now: number): FleetState {
  const orders = before.orders.filter((order) => order.run_id !== run_id);
  if (orders.length === before.orders.length) return before;
  const leaving = before.leaving
    .map((one) => ({ ...one, told: one.told.filter((notice) => notice.run_id !== run_id) }))
    .filter(({ told }) => told.length > 0);
  let state = shownAnew({ ...before, orders, leaving }, now);
  for (const { id, told } of Object.values(state.replicas)) {
    state = withReplica(state, id, { told: told.filter((one) => one.run_id !== run_id) }, now);
  }
  return state;
}

/** An order can change whether a replica takes calls. */
function shownAnew(before: FleetState, now: number): FleetState {
  let state = before;
  for (const id of Object.keys(before.replicas)) state = withReplica(state, id, {}, now);
  return state;
}

/** Finds a replica by id or by name; null if the fleet has none. */
export function named({ replicas }: FleetState, replica: string): Replica | null {
  return replicas[replica] ?? Object.values(replicas).find(({ name }) => name === replica) ?? null;
}

/** Another party changes a replica's weights and reports it. */
export function reported(before: FleetState, report: ReplicaReport, moment: Moment): FleetState {
  const replica = named(before, report.replica);
  if (replica === null || before.update.mode !== "reported") return before;
  const { run_id, generation, version } = report;
  const weights = { run_id, generation, version };
  const { claimed, holds, phase } = replica;
  const older = claimed?.run_id === run_id && isLater(claimed, weights);
  const there = holds !== null && holds !== "start" && holds.run_id === run_id && !isLater(weights, holds);
  if (older || there) return before;
  const { now, number } = moment;
  if (report.state === "failed") {
    const reason = `loading version ${version} was reported as failed`;
    const failing = again(replica.failing, reason, now);
    const unknown = { holds: null, doubt: reason, phase: null, failing };
    return withReplica(unannounced(before, replica), replica.id, unknown, now);
  }
  const doubt = `version ${version} is being loaded`;
  const ended =
    report.state === "pending" ? withInterval(before, replica.id, { end: number }) : unannounced(before, replica);
  const state = withReplica(ended, replica.id, { holds: null, doubt, claimed: weights, failing: null }, now);
  const name = report.state === "pending" ? "reported" : "verify";
  // If the replica is already being verified, this is the same report again.
  const begun = phase ?? phaseOf(name, now, now);
  return go(state, { ...replica, phase: { ...begun, fault: null } }, { name, target: weights }, now);
}

/** It is unknown since when it has had these weights. After a `pending` report the interval has already ended. */
function unannounced(state: FleetState, { id }: Replica): FleetState {
  return { ...state, intervals: { ...state.intervals, [id]: voidInterval(state.intervals[id] ?? []) } };
}

/** What trainers have not yet been notified of about this replica. */
export function unnotified(state: FleetState, replica: Replica): TrainerNotice[] {
  return state.orders.flatMap((order): TrainerNotice[] => {
    const { run_id, generation } = order;
    const notified = replica.told.find((one) => one.run_id === run_id) ?? null;
    const news = newsOf(state, replica, order, notified);
    if (news === null) return [];
    const notice = { run_id, generation, ...news };
    const same =
      notified?.generation === generation && notified.version === notice.version && notified.state === notice.state;
    return same ? [] : [notice];
  });
}

function newsOf(
  state: FleetState,
  replica: Replica,
  order: WeightOrder,
  notified: TrainerNotice | null,
): Pick<TrainerNotice, "version" | "state"> | null {
  switch (replica.shown) {
    case "ready": {
      const version = servedVersion(state, replica, order.run_id);
      return version === null ? null : { version, state: "applied" };
    }
    // The replica is expected back soon.
    case "updating":
    case "joining":
      return null;
    case "stale":
    case "down":
    case "draining":
      // A trainer that was never notified does not count on the replica, so there is nothing to withdraw. A failed
      // update is reported anyway.
      if (notified === null && replica.failing === null) return null;
      return { version: order.version, state: "failed" };
  }
}

export function noteNotified(before: FleetState, id: string, notice: TrainerNotice, now: number): FleetState {
  if (before.replicas[id] === undefined) {
    const rest = before.leaving.map((one) =>
      one.id === id ? { ...one, told: one.told.filter(({ run_id }) => run_id !== notice.run_id) } : one,
    );
    return { ...before, leaving: rest.filter(({ told }) => told.length > 0) };
  }
  const told = before.replicas[id].told.filter(({ run_id }) => run_id !== notice.run_id);
  return withReplica(before, id, { told: [...told, notice] }, now);
}

/** Removed replicas are reported as failed, so that trainers do not wait for them. */
export function leavingNews({ orders }: Pick<FleetState, "orders">, told: readonly TrainerNotice[]): TrainerNotice[] {
  return told.flatMap(({ run_id }) => {
    const order = orders.find((one) => one.run_id === run_id);
    if (order === undefined) return [];
    return [{ run_id, generation: order.generation, version: order.version, state: "failed" }];
  });
}
