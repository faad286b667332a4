/** When a fleet's object has something to do: pure; times are epoch milliseconds. */
import { mayBegin, toUnload, wantedOf } from "./driving.ts";
import { leavingNews, untold } from "./orders.ts";
import { type FleetState, isNewlyDown, type Replica } from "./state.ts";

/** While runs use the fleet, each replica is looked at so often. */
const LOOK_MS = 10_000;

export interface Uses {
  readonly now: number;
  /** Calls were given out not long ago. */
  readonly used: boolean;
  readonly inFlight: (replica: string) => number;
  /** Not before: what is to be done at it. */
  readonly heldUntil: (replica: string) => number;
  /** Not before: what a trainer is to be told of it. */
  readonly tellAt: (replica: string) => number;
}

/** When a replica that is not being updated is to be looked at; null: not before calls or new weights come. */
export function lookAt(state: FleetState, replica: Replica, used: boolean): number | null {
  const { phase, outage, probed, probed_at } = replica;
  if (phase !== null) return null;
  if (!probed && outage === null) return 0;
  if (!used && !isDue(state, replica) && !isBlind(state, replica)) return null;
  return outage?.at ?? probed_at + LOOK_MS;
}

/** It is to be updated, and the look says whether it can be. */
function isDue(state: FleetState, replica: Replica): boolean {
  return state.update.mode !== "reported" && !replica.draining && wantedOf(state, replica) !== null;
}

/** It shows neither its process nor its weights: of what a run put onto it, it is believed while it is watched. */
function isBlind({ orders }: FleetState, { holds, proof }: Replica): boolean {
  if (orders.length === 0 || holds === null || holds === "start") return false;
  return proof === null || (proof.process === null && proof.label === null);
}

/** The next moment at which there is something to do; null: none. */
export function nextAt(state: FleetState, uses: Uses): number | null {
  const times = Object.values(state.replicas).flatMap((replica) => {
    const due = dueOf(state, replica, uses).filter((at) => at !== null);
    const news = untold(state, replica).length > 0 || isNewlyDown(replica);
    const tell = news ? [uses.tellAt(replica.id)] : [];
    return [...due.map((at) => Math.max(at, uses.heldUntil(replica.id))), ...tell];
  });
  for (const { id, told } of state.leaving) if (leavingNews(state, told).length > 0) times.push(uses.tellAt(id));
  return times.length === 0 ? null : Math.max(uses.now, Math.min(...times));
}

function dueOf(state: FleetState, replica: Replica, { now, used, inFlight }: Uses): (number | null)[] {
  const { id, phase, failing, held_until, unload_at } = replica;
  if (phase !== null) return [phaseAt(phase, inFlight(id))];
  const from = Math.max(failing?.at ?? 0, held_until);
  const waits = state.update.mode !== "reported" && from > now;
  const again = waits && wantedOf(state, replica) !== null ? from : null;
  const begin = mayBegin(state, replica, now) ? now : again;
  const unload = toUnload(state, replica, Number.POSITIVE_INFINITY) === null ? null : unload_at;
  return [begin, unload, lookAt(state, replica, used)];
}

function phaseAt({ name, at, until }: NonNullable<Replica["phase"]>, inFlight: number): number {
  if (name === "reported") return until;
  return name === "drain" && inFlight > 0 ? until : at;
}
