/**
 * The deletion jobs of a project's object, one row per job in its SQLite. When a child job ends, its counts are added
 * to its parent, in one transaction.
 *
 * Invariants. A job's step, its position and its counts are one write, made before the counted things are deleted or
 * after all of them are. After a kill, a slice is repeated and nothing is counted twice.
 */
import type { DeletionKind } from "../contract/deletion.ts";
import { Rows } from "../kernel/kit/rows.ts";
import type { DeletionOrder } from "./rpc.ts";

export type Counts = Readonly<Record<string, number>>;

/** The progress of a job. */
export interface Progress {
  readonly step: string;
  readonly counts: Counts;
  /** The number of freed objects. */
  readonly freed: number;
  /** The number of objects to free, once it is known. */
  readonly hosts: number;
  /** R2 keys that are counted and about to be deleted. */
  readonly leaving: readonly string[];
  /** Whether the rows of this step are counted. */
  readonly counted: boolean;
}

export interface Job extends DeletionOrder, Progress {
  /** The parent job; null for a job with its own deletion. */
  readonly parent: string | null;
  readonly tries: number;
}

interface JobRow {
  readonly id: string;
  readonly parent: string | null;
  readonly kind: DeletionKind;
  readonly target_id: string;
  readonly tries: number;
  readonly progress: string;
  [column: string]: SqlStorageValue;
}

/** The first step of every job. */
export const FIRST_STEP = "close";

const SCHEMA = `create table if not exists jobs (
  id text primary key, parent text, kind text not null, target_id text not null,
  next_at integer not null, tries integer not null, progress text not null, unique (kind, target_id))`;

export class Jobs {
  readonly #storage: DurableObjectStorage;
  readonly #rows: Rows;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#rows = new Rows(storage.sql);
  }

  create(): void {
    this.#storage.sql.exec(SCHEMA);
  }

  /** Adds a job at its first step. An existing job with the same target does not change. */
  add({ id, kind, target_id }: DeletionOrder, parent: string | null, now: number): void {
    const progress: Progress = { step: FIRST_STEP, counts: {}, freed: 0, hosts: 0, leaving: [], counted: false };
    this.#storage.sql.exec(
      `insert into jobs (id, parent, kind, target_id, next_at, tries, progress) values (?, ?, ?, ?, ?, 0, ?)
        on conflict do nothing`,
      ...[id, parent, kind, target_id, now, JSON.stringify(progress)],
    );
  }

  /** Jobs that are due, the longest due first. */
  due(now: number, limit: number): Job[] {
    const query = "select * from jobs where next_at <= ? order by next_at, id limit ?";
    return this.#rows.all<JobRow>(query, now, limit).map(jobOf);
  }

  find(id: string): Job | null {
    const row = this.#rows.one<JobRow>("select * from jobs where id = ?", id);
    return row === null ? null : jobOf(row);
  }

  /** The number of unfinished child jobs. */
  children(id: string): number {
    return this.#rows.one<{ n: number }>("select count(*) as n from jobs where parent = ?", id)?.n ?? 0;
  }

  /** The number of jobs other than this one. */
  others(id: string): number {
    return this.#rows.one<{ n: number }>("select count(*) as n from jobs where id != ?", id)?.n ?? 0;
  }

  nextAt(): number | null {
    return this.#rows.one<{ at: number | null }>("select min(next_at) as at from jobs")?.at ?? null;
  }

  save(id: string, progress: Progress, nextAt: number): void {
    const { step, counts, freed, hosts: shards, leaving, counted } = progress;
    const text = JSON.stringify({ step, counts, freed, hosts: shards, leaving, counted } satisfies Progress);
    this.#storage.sql.exec("update jobs set progress = ?, next_at = ?, tries = 0 where id = ?", text, nextAt, id);
  }

  /** The slice failed and is tried again. */
  later(id: string, nextAt: number): void {
    this.#storage.sql.exec("update jobs set tries = tries + 1, next_at = ? where id = ?", nextAt, id);
  }

  /** Ends a job: its counts are added to its parent, which runs again immediately. */
  end({ id, parent, counts }: Pick<Job, "id" | "parent" | "counts">, now: number): void {
    this.#storage.transactionSync(() => {
      const of = parent === null ? null : this.find(parent);
      if (of !== null) this.save(of.id, { ...of, counts: plus(of.counts, counts) }, now);
      this.#storage.sql.exec("delete from jobs where id = ?", id);
    });
  }
}

function jobOf({ id, parent, kind, target_id, tries, progress }: JobRow): Job {
  return { id, parent, kind, target_id, tries, ...(JSON.parse(progress) as Progress) };
}

export function plus(counts: Counts, more: Counts): Counts {
  const sums = Object.entries(more).map(([name, n]) => [name, (counts[name] ?? 0) + n] as const);
  return { ...counts, ...Object.fromEntries(sums) };
}
