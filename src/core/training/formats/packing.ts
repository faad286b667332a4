/**
 * Which rows go together into one packed sequence, by their lengths alone: first fit, in the order of the batch.
 *
 * Invariants. A row is in one pack. A pack has at most `seq_len` tokens; a longer row is cut to it. Packs that are begun
 * and not whole never have more than `openTokens` tokens together, so rows can be packed as they arrive. The same
 * lengths give the same packs, whoever computes them.
 */

export interface PackingSizes {
  readonly seq_len: number;
  /** At least `seq_len`. */
  readonly openTokens: number;
}

interface Pack {
  readonly rows: number[];
  tokens: number;
}

/** Numbers of rows, pack by pack, in the order in which their last row comes. */
export function packRows(lengths: readonly number[], { seq_len, openTokens }: PackingSizes): number[][] {
  const packs: Pack[] = [];
  let open: Pack[] = [];
  let held = 0;
  for (const [row, length] of lengths.entries()) {
    const tokens = Math.min(length, seq_len);
    while (held + tokens > openTokens && open.length > 0) {
      const fullest = open.reduce((most, pack) => (pack.tokens > most.tokens ? pack : most));
      open = open.filter((pack) => pack !== fullest);
      held -= fullest.tokens;
    }
    let pack = open.find((begun) => begun.tokens + tokens <= seq_len);
    if (pack === undefined) {
      pack = { rows: [], tokens: 0 };
      open.push(pack);
      packs.push(pack);
    }
    pack.rows.push(row);
    pack.tokens += tokens;
    held += tokens;
  }
  const lastRow = ({ rows }: Pack) => rows.at(-1) ?? 0;
  return packs.sort((one, other) => lastRow(one) - lastRow(other)).map(({ rows }) => rows);
}

/** The packs of one rank: every `ranks`-th. Each rank has as many, the last of some are null: nothing is left for them. */
export function packsOfRank<Pack>(packs: readonly Pack[], rank: number, ranks: number): (Pack | null)[] {
  const each = Math.max(1, Math.ceil(packs.length / ranks));
  return Array.from({ length: each }, (_, at) => packs[at * ranks + rank] ?? null);
}
