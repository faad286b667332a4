/** Computes when a fleet object next has something to do. Pure; times are epoch milliseconds. */
import { mayBegin, toUnload, wantedOf } from "./driving.ts";
import { leavingNews, unnotified } from "./orders.ts";
import { type FleetState, isNewlyDown, type Replica } from "./state.ts";

/** How often each replica is probed while runs use the fleet. */
const LOOK_MS = 10_000;

export interface Uses {
  readonly now: number;
  /** Whether calls were given out recently. */
  readonly used: boolean;
  /** Places that are given out, with a call or free. */
  readonly inFlight: (replica: string) => number;
  /** The earliest time at which one of them ends by itself; absent or infinity: none does. */
  readonly placesEndAt?: number;
  /** The earliest time at which a step may start at the replica. */
  readonly heldUntil: (replica: string) => number;
  /** The earliest time at which a trainer may be notified about the replica. */
  readonly notifyAt: (replica: string) => number;
}

/** When to probe a replica that is not being updated. Null: no probe until calls or new weights arrive. */
export function lookAt(state: FleetState, replica: Replica, used: boolean): number | null {
  const { phase, outage, probed, probed_at } = replica;
  if (phase !== null) return null;
  if (!probed && outage === null) return 0;
  if (!used && !isDue(state, replica) && !isBlind(state, replica)) return null;
  return outage?.at ?? probed_at + LOOK_MS;
}

/** The replica needs an update. The probe shows whether an update is possible. */
function isDue(state: FleetState, replica: Replica): boolean {
  return state.update.mode !== "reported" && !replica.draining && wantedOf(state, replica) !== null;
}

/** The replica reports neither its process nor its weights: these are known only while it is probed regularly. */
function isBlind({ orders }: FleetState, { holds, proof }: Replica): boolean {
  if (orders.length === 0 || holds === null || holds === "start") return false;
  return proof === null || (proof.process === null && proof.label === null);
}

/** The next time at which there is something to do; null if there is nothing. */
export function nextAt(state: FleetState, uses: Uses): number | null {
  const times = Object.values(state.replicas).flatMap((replica) => {
    const due = dueOf(state, replica, uses).filter((at) => at !== null);
    const news = unnotified(state, replica).length > 0 || isNewlyDown(replica);
    const tell = news ? [uses.notifyAt(replica.id)] : [];
    return [...due.map((at) => Math.max(at, uses.heldUntil(replica.id))), ...tell];
  });
  for (const { id, told } of state.leaving) if (leavingNews(state, told).length > 0) times.push(uses.notifyAt(id));
  return times.length === 0 ? null : Math.max(uses.now, Math.min(...times));
}

function dueOf(state: FleetState, replica: Replica, uses: Uses): (number | null)[] {
  const { now, used } = uses;
  const { phase, failing, held_until, unload_at } = replica;
  if (phase !== null) return [phaseAt(replica.id, phase, uses)];
  const from = Math.max(failing?.at ?? 0, held_until);
  const waits = state.update.mode !== "reported" && from > now;
  const again = waits && wantedOf(state, replica) !== null ? from : null;
  const begin = mayBegin(state, replica, now) ? now : again;
  const unload = toUnload(state, replica, Number.POSITIVE_INFINITY) === null ? null : unload_at;
  return [begin, unload, lookAt(state, replica, used)];
}

function phaseAt(
  id: string,
  { name, at, until }: NonNullable<Replica["phase"]>,
  { inFlight, placesEndAt = Number.POSITIVE_INFINITY }: Uses,
): number {
  if (name === "reported") return until;
  return name === "drain" && inFlight(id) > 0 ? Math.min(until, placesEndAt) : at;
}
