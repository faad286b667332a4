/**
 * Cache of the rows of rollouts that have not ended: each is read several times between its dispatch and its end. The
 * table is the authority, and every write goes there first. A row that is not in the cache is read again.
 */
import type { RolloutEntry } from "../messages/run-records.ts";
import type { RolloutSlot } from "../messages/wire.ts";

/** About 1 kB each. */
const MOST_ROWS = 4000;

export class RowsInFlight {
  readonly #most: number;
  /** By `seq`, in the order of insertion. */
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

  /** Caches a row as it is stored, unless it has ended. Returns the row. */
  remember<Row extends RolloutEntry | null>(row: Row): Row {
    if (row === null || row.status === "done") return row;
    this.#rows.set(row.seq, row);
    this.#seqs.set(nameIn(row), row.seq);
    const [oldest] = this.#rows.values();
    if (oldest !== undefined && this.#rows.size > this.#most) this.#drop(oldest);
    return row;
  }

  /** Applies written columns. Row objects returned earlier do not change. */
  change(seq: number, columns: Partial<RolloutEntry>): void {
    const known = this.#rows.get(seq);
    if (known === undefined) return;
    const changed = { ...known, ...columns };
    if (changed.status === "done") this.#drop(known);
    else this.#rows.set(seq, changed);
  }

  /** Must be called when the stored rows may have changed otherwise. */
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
