/**
 * What a project's object has to delete: a row a job, on its own SQLite. A job that goes with another one adds what it
 * counted to that one as it ends, in one transaction.
 *
 * Invariants. A job's step, where it stands in it and what it has counted are one write, made before what was counted is
 * deleted or after all of it is: whatever a kill cuts off is done again, and nothing is counted twice.
 */
import type { DeletionKind } from "../contract/deletion.ts";
import { Rows } from "../kernel/kit/rows.ts";
import type { DeletionOrder } from "./rpc.ts";

export type Counts = Readonly<Record<string, number>>;

/** How far a job is. */
export interface Progress {
  readonly step: string;
  readonly counts: Counts;
  /** Objects that are freed. */
  readonly freed: number;
  /** Objects there are to free, once that is known. */
  readonly hosts: number;
  /** Keys of R2 that are counted, and on their way out. */
  readonly leaving: readonly string[];
  /** What is counted of the step's rows, and on its way out. */
  readonly counted: boolean;
}

export interface Job extends DeletionOrder, Progress {
  /** The job it goes with; null for one that has a deletion of its own. */
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

/** Where every job begins. */
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

  /** Begins a job at its first step. One about the same target that is there already stays as it is. */
  add({ id, kind, target_id }: DeletionOrder, parent: string | null, now: number): void {
    const progress: Progress = { step: FIRST_STEP, counts: {}, freed: 0, hosts: 0, leaving: [], counted: false };
    this.#storage.sql.exec(
      `insert into jobs (id, parent, kind, target_id, next_at, tries, progress) values (?, ?, ?, ?, ?, 0, ?)
        on conflict do nothing`,
      ...[id, parent, kind, target_id, now, JSON.stringify(progress)],
    );
  }

  /** Those that are due, the longest due first. */
  due(now: number, limit: number): Job[] {
    const query = "select * from jobs where next_at <= ? order by next_at, id limit ?";
    return this.#rows.all<JobRow>(query, now, limit).map(jobOf);
  }

  find(id: string): Job | null {
    const row = this.#rows.one<JobRow>("select * from jobs where id = ?", id);
    return row === null ? null : jobOf(row);
  }

  /** Jobs that go with this one and have not ended. */
  children(id: string): number {
    return this.#rows.one<{ n: number }>("select count(*) as n from jobs where parent = ?", id)?.n ?? 0;
  }

  /** Jobs besides this one. */
  others(id: string): number {
    return this.#rows.one<{ n: number }>("select count(*) as n from jobs where id != ?", id)?.n ?? 0;
  }

  nextAt(): number | null {
    return this.#rows.one<{ at: number | null }>("select min(next_at) as at from jobs")?.at ?? null;
  }

  save(id: string, progress: Progress, nextAt: number): void {
    const { step, counts, freed, hosts, leaving, counted } = progress;
    const text = JSON.stringify({ step, counts, freed, hosts, leaving, counted } satisfies Progress);
    this.#storage.sql.exec("update jobs set progress = ?, next_at = ?, tries = 0 where id = ?", text, nextAt, id);
  }

  /** It came to nothing, and is tried again. */
  later(id: string, nextAt: number): void {
    this.#storage.sql.exec("update jobs set tries = tries + 1, next_at = ? where id = ?", nextAt, id);
  }

  /** Its end: what it counted goes to the job it went with, which is looked at again at once. */
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
