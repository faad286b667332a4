/**
 * Stores what an endpoint's object needs after a restart: a head, and a row per run.
 *
 * Invariants. Only what changed is written: an ask writes the row of its run, and the head if the endpoint's health or
 * settings changed. One `save` is written completely or not at all. Without a head there are no rows.
 */
import type { Scope } from "../../contract/scope.ts";
import { type LeaseRun, LeaseRuns } from "./lease-runs.ts";
import type { EndpointState } from "./lease-state.ts";

/** What is stored: the endpoint's identity, its leases, limits and health, and when its settings were last read. */
export interface Kept {
  readonly scope: Scope;
  readonly endpoint_id: string;
  readonly state: EndpointState;
  readonly limits_at: number;
}

type Head = Omit<Kept, "state"> & Omit<EndpointState, "runs">;

/** Earlier releases stored everything as one value. */
interface Older extends Omit<Kept, "state"> {
  readonly state: Omit<EndpointState, "runs"> & { readonly runs: Readonly<Record<string, LeaseRun>> };
}

const HEAD = "head";
/** One row per run, under its id. */
const ROW = "run/";
const OLDER = "endpoint";

export class EndpointStore {
  readonly #storage: DurableObjectStorage;
  /** What the storage has; undefined until it is read. */
  #stored: Kept | null | undefined;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
  }

  /** Null if nothing is stored. */
  load(): Kept | null {
    if (this.#stored === undefined) this.#stored = this.#loadOlder() ?? this.#loadRows();
    return this.#stored;
  }

  save(kept: Kept): void {
    const before = this.load();
    const { kv } = this.#storage;
    this.#storage.transactionSync(() => {
      if (!isSameHead(before, kept)) kv.put(HEAD, headOf(kept));
      if (before?.state.runs === kept.state.runs) return;
      for (const [run_id] of before?.state.runs ?? []) {
        if (kept.state.runs.get(run_id) === undefined) kv.delete(ROW + run_id);
      }
      for (const [run_id, run] of kept.state.runs) {
        if (before?.state.runs.get(run_id) !== run) kv.put(ROW + run_id, run);
      }
    });
    this.#stored = kept;
  }

  clear(): void {
    this.#storage.transactionSync(() => this.#deleteAll());
    this.#stored = null;
  }

  #loadRows(): Kept | null {
    const { kv } = this.#storage;
    const head = kv.get<Head>(HEAD);
    if (head === undefined) return null;
    const { limits, health, ...identity } = head;
    const rows = Array.from(kv.list<LeaseRun>({ prefix: ROW }), ([key, run]): [string, LeaseRun] => {
      return [key.slice(ROW.length), run];
    });
    return { ...identity, state: { limits, health, runs: LeaseRuns.of(rows) } };
  }

  /** An older release may have run again after rows were written: its value is newer than any row. */
  #loadOlder(): Kept | null {
    const { kv } = this.#storage;
    const older = kv.get<Older>(OLDER);
    if (older === undefined) return null;
    const kept = { ...older, state: { ...older.state, runs: LeaseRuns.of(Object.entries(older.state.runs)) } };
    this.#storage.transactionSync(() => {
      this.#deleteAll();
      kv.put(HEAD, headOf(kept));
      for (const [run_id, run] of kept.state.runs) kv.put(ROW + run_id, run);
    });
    return kept;
  }

  #deleteAll(): void {
    const { kv } = this.#storage;
    for (const key of [HEAD, OLDER, ...Array.from(kv.list({ prefix: ROW }), ([row]) => row)]) kv.delete(key);
  }
}

function headOf({ state: { limits, health }, ...identity }: Kept): Head {
  return { ...identity, limits, health };
}

function isSameHead(before: Kept | null, { state, limits_at }: Kept): boolean {
  if (before === null || before.limits_at !== limits_at) return false;
  return before.state.limits === state.limits && before.state.health === state.health;
}
