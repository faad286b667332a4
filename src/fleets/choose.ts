/** Chooses the replica that takes a call. Pure. */
import type { WantedPlace } from "./rpc.ts";
import { type AskedCall, type Served, servedTo } from "./served.ts";
import { type FleetState, type Replica, takesCalls } from "./state.ts";

export type Choice =
  | { readonly kind: "go"; readonly replica: Replica; readonly served: Served }
  /** `busy`: a replica could take the call, but every such replica is at its limit of calls. */
  | { readonly kind: "wait"; readonly reason: string; readonly busy?: true };

interface Candidate {
  readonly replica: Replica;
  readonly served: Served;
  /** The fraction of its `max_concurrent` that is in use: from 0 to 1. */
  readonly load: number;
}

/**
 * Prefers the replica that has the rollout's prefix cached, if it can take the call; otherwise the least loaded one.
 * The replica that has just failed this call is chosen only if there is no other.
 */
export function choose(
  state: FleetState,
  call: AskedCall & Omit<WantedPlace, "wait_ms">,
  inFlight: (replica: string) => number,
): Choice {
  const all = Object.values(state.replicas);
  const taking = all.filter((replica) => takesCalls(replica) && isFor(replica, call));
  if (taking.length === 0) return { kind: "wait", reason: whyNone(all) };
  const able = taking.flatMap((replica): Candidate[] => {
    const served = servedTo(state, replica, call);
    const load = inFlight(replica.id) / replica.max_concurrent;
    return served === null ? [] : [{ replica, served, load }];
  });
  if (able.length === 0) return { kind: "wait", reason: "no replica is known to have weights of this run" };
  const others = able.filter(({ replica }) => replica.id !== call.failed_replica);
  const open = (others.length > 0 ? others : able).filter(({ load }) => load < 1);
  const sticky = open.find(({ replica }) => replica.id === call.last_replica);
  const [first] = open.toSorted((one, other) => one.load - other.load);
  const chosen = sticky ?? first;
  if (chosen === undefined) return { kind: "wait", reason: "every replica is at its limit of calls", busy: true };
  return { kind: "go", replica: chosen.replica, served: chosen.served };
}

/** A draining replica takes calls only of rollouts that it already serves. */
function isFor({ id, shown }: Replica, { last_replica }: Pick<WantedPlace, "last_replica">): boolean {
  return shown === "ready" || id === last_replica;
}

function whyNone(replicas: readonly Replica[]): string {
  if (replicas.length === 0) return "the fleet has no replica";
  const counts = Map.groupBy(replicas, ({ shown }) => shown);
  return `no replica is ready: ${[...counts].map(([state, { length }]) => `${length} ${state}`).join(", ")}`;
}
