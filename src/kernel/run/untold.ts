/**
 * The running rollouts of a run that ends early which must still be notified to stop. Their numbers are read once: they
 * are looked for at every tick, and a run may have 50,000 rollouts in flight.
 */
import type { RolloutEntry } from "../messages/run-records.ts";

/** Where they are read. */
interface Source {
  /** The numbers (`seq`) of all of them, in order. */
  readonly all: () => readonly number[];
  readonly bySeq: (seq: number) => RolloutEntry | null;
}

export class Untold {
  readonly #source: Source;
  /** Null: not read yet. */
  #seqs: readonly number[] | null = null;

  constructor(source: Source) {
    this.#source = source;
  }

  /** Must be called when a rollout may have become one of them, or the stored rows may have changed otherwise. */
  forget(): void {
    this.#seqs = null;
  }

  /** The first of them. */
  first(limit: number): RolloutEntry[] {
    const seqs = this.#seqs ?? this.#source.all();
    const rows: RolloutEntry[] = [];
    let at = 0;
    for (; at < seqs.length && rows.length < limit; at += 1) {
      const row = this.#source.bySeq(seqs[at] ?? 0);
      if (row?.status === "running" && row.told === 0) rows.push(row);
    }
    this.#seqs = [...rows.map(({ seq }) => seq), ...seqs.slice(at)];
    return rows;
  }
}
