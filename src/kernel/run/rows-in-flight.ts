/**
 * Rows of rollouts that have not ended, in the memory of the object that owns them: each is asked for several times
 * between its dispatch and its end. The table stays the authority, and every write of it goes there first. A row that is
 * forgotten is read again.
 */
import type { RolloutEntry } from "../messages/run-records.ts";
import type { RolloutSlot } from "../messages/wire.ts";

/** Of about 1 kB each. */
const MOST_ROWS = 4000;

export class RowsInFlight {
  readonly #most: number;
  /** By `seq`, in the order in which they were remembered. */
  readonly #rows = new Map<number, RolloutEntry>();
  readonly #seqs = new Map<string, number>();

  constructor(most: number = MOST_ROWS) {
    this.#most = most;
  }

  bySeq(seq: number): RolloutEntry | undefined {
    return this.#rows.get(seq);
  }

  inSlot(slot: RolloutSlot): RolloutEntry | undefined {
    const seq = this.#seqs.get(nameOf(slot));
    return seq === undefined ? undefined : this.#rows.get(seq);
  }

  /** A row as it is stored; one that has ended is not kept. Gives it back. */
  remember<Row extends RolloutEntry | null>(row: Row): Row {
    if (row === null || row.status === "done") return row;
    this.#rows.set(row.seq, row);
    this.#seqs.set(nameIn(row), row.seq);
    const [oldest] = this.#rows.values();
    if (oldest !== undefined && this.#rows.size > this.#most) this.#drop(oldest);
    return row;
  }

  /** These columns were written. Whoever holds the row as it was keeps it so. */
  change(seq: number, columns: Partial<RolloutEntry>): void {
    const known = this.#rows.get(seq);
    if (known === undefined) return;
    const changed = { ...known, ...columns };
    if (changed.status === "done") this.#drop(known);
    else this.#rows.set(seq, changed);
  }

  /** What is stored may be something else by now. */
  forget(): void {
    this.#rows.clear();
    this.#seqs.clear();
  }

  #drop(row: RolloutEntry): void {
    this.#rows.delete(row.seq);
    this.#seqs.delete(nameIn(row));
  }
}

function nameIn({ group_index: group, slot, attempt }: RolloutEntry): string {
  return nameOf({ group, slot, attempt });
}

function nameOf({ group, slot, attempt }: RolloutSlot): string {
  return `${group}/${slot}/${attempt}`;
}
