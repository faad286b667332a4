/** When a fleet's object has something to do: pure; times are epoch milliseconds. */
import { mayBegin, toUnload, wantedOf } from "./driving.ts";
import { leavingNews, untold } from "./orders.ts";
import { type FleetState, isNewlyDown, type Replica } from "./state.ts";

/** While runs use the fleet, each replica is looked at so often. */
const LOOK_MS = 10_000;

export interface Uses {
  readonly now: number;
  /** Runs use it, or its replicas are to have certain weights. */
  readonly used: boolean;
  readonly inFlight: (replica: string) => number;
  /** Not before: what is to be done at it. */
  readonly heldUntil: (replica: string) => number;
  /** Not before: what a trainer is to be told of it. */
  readonly tellAt: (replica: string) => number;
}

/** When a replica that is not being updated is to be looked at; null: never. */
export function lookAt({ phase, outage, probed, probed_at }: Replica, used: boolean): number | null {
  if (phase !== null) return null;
  if (!probed && outage === null) return 0;
  if (!used) return null;
  return outage?.at ?? probed_at + LOOK_MS;
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
  return [begin, unload, lookAt(replica, used)];
}

function phaseAt({ name, at, until }: NonNullable<Replica["phase"]>, inFlight: number): number {
  if (name === "reported") return until;
  return name === "drain" && inFlight > 0 ? until : at;
}
