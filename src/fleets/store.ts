/**
 * Stores a fleet object's state in its SQLite: the owner, the replicas, the orders and the version intervals.
 *
 * Invariants. Nothing is written before `create`. One `save` is written completely or not at all, because it awaits
 * nothing. The time of the last probe and how far the current interval is confirmed are not written by themselves.
 */

import { Rows } from "../kernel/kit/rows.ts";
import type { FleetCall } from "./rpc.ts";
import { type FleetState, newFleet, type Replica } from "./state.ts";
import { readUpdate, type StoredUpdate } from "./stored-update.ts";
import type { VersionInterval } from "./version-intervals.ts";

export type FleetOf = Pick<FleetCall, "scope" | "fleet_id">;

/** Tables of a fleet object. `stretch`: the whole version interval, as JSON. */
const FLEET_SCHEMA = [
  "create table replicas (id text primary key, replica text not null) without rowid",
  `create table stretches (
    replica_id text not null, from_number integer not null, stretch text not null,
    primary key (replica_id, from_number)) without rowid`,
];

const SHARED = ["update", "orders", "released", "leaving"] as const;
type Shared = Pick<FleetState, (typeof SHARED)[number]>;

export class FleetStore {
  readonly #storage: DurableObjectStorage;
  readonly #rows: Rows;
  #of: FleetOf | undefined;
  #state: FleetState | undefined;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#rows = new Rows(storage.sql);
  }

  /** Null for an object that was not created. */
  of(): FleetOf | null {
    this.#of ??= this.#storage.kv.get<FleetOf>("fleet");
    return this.#of ?? null;
  }

  /** Call it when the storage is freed. */
  forget(): void {
    this.#of = undefined;
    this.#state = undefined;
  }

  create({ scope, fleet_id }: FleetOf, update: StoredUpdate): void {
    for (const statement of FLEET_SCHEMA) this.#storage.sql.exec(statement);
    this.#of = { scope, fleet_id };
    this.#storage.kv.put("fleet", this.#of);
    this.#state = newFleet(update);
    this.#putShared(this.#state);
  }

  /** Only for an object that was created. */
  state(): FleetState {
    this.#state ??= this.#read();
    return this.#state;
  }

  #read(): FleetState {
    const shared = this.#storage.kv.get<Shared>("shared");
    if (shared === undefined) throw new Error("the state of a fleet that was never created");
    const replicas: Record<string, Replica> = {};
    const intervals: Record<string, VersionInterval[]> = {};
    for (const { id, replica } of this.#rows.all<{ id: string; replica: string }>("select id, replica from replicas")) {
      replicas[id] = JSON.parse(replica);
    }
    const query = "select replica_id, stretch from stretches order by replica_id, from_number";
    for (const { replica_id, stretch: interval } of this.#rows.all<{ replica_id: string; stretch: string }>(query)) {
      const before = intervals[replica_id] ?? [];
      before.push(JSON.parse(interval));
      intervals[replica_id] = before;
    }
    const update = readUpdate(shared.update);
    return { ...newFleet(update), ...shared, update, replicas, intervals };
  }

  save(state: FleetState): void {
    const before = this.state();
    if (state === before) return;
    this.#state = state;
    if (SHARED.some((name) => state[name] !== before[name])) this.#putShared(state);
    for (const id of new Set([...Object.keys(before.replicas), ...Object.keys(state.replicas)])) {
      this.#putReplica(id, before.replicas[id], state.replicas[id]);
      this.#putIntervals(id, before.intervals[id] ?? [], state.intervals[id] ?? []);
    }
  }

  #putShared({ update, orders, released, leaving }: FleetState): void {
    const shared: Shared = { update, orders, released, leaving };
    this.#storage.kv.put("shared", shared);
  }

  #putReplica(id: string, before: Replica | undefined, after: Replica | undefined): void {
    if (before === after) return;
    if (after === undefined) this.#rows.all("delete from replicas where id = ?", id);
    else if (before === undefined || keptOf(before) !== keptOf(after)) {
      this.#rows.insert("replicas", { id, replica: JSON.stringify(after) }, "replace");
    }
  }

  #putIntervals(replica_id: string, before: readonly VersionInterval[], after: readonly VersionInterval[]): void {
    if (before === after) return;
    const known = new Map(before.map((interval) => [interval.from, interval]));
    for (const interval of after) {
      const same = known.get(interval.from);
      known.delete(interval.from);
      if (same === interval || (same !== undefined && same.to === interval.to)) continue;
      const row = { replica_id, from_number: interval.from, stretch: JSON.stringify(interval) };
      this.#rows.insert("stretches", row, "replace");
    }
    const gone = "delete from stretches where replica_id = ? and from_number = ?";
    for (const from of known.keys()) this.#rows.all(gone, replica_id, from);
  }

  /** The last number that is reserved on disk. */
  reserved(): number {
    return this.#storage.kv.get<number>("reserved") ?? 0;
  }

  reserve(upTo: number): void {
    this.#storage.kv.put("reserved", upTo);
  }

  /** When a call last started, accurate to some minutes. */
  usedAt(): number {
    return this.#storage.kv.get<number>("used_at") ?? 0;
  }

  noteUsed(now: number): void {
    this.#storage.kv.put("used_at", now);
  }
}

/** The part of a replica whose change is written. */
function keptOf(replica: Replica): string {
  return JSON.stringify({ ...replica, probed_at: 0 });
}
