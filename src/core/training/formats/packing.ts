/**
 * Which rows go together into one packed sequence, by their lengths alone: first fit, in the order of the batch.
 *
 * Invariants. A row is in one pack. A pack has at most `seq_len` tokens; a longer row is cut to it. Packs that are begun
 * and not whole never have more than `openTokens` tokens together, so rows can be packed as they arrive. The same
 * lengths give the same packs, whoever computes them. The work grows as the rows do, times the logarithm of theirs.
 */

export interface PackingSizes {
  readonly seq_len: number;
  /** At least `seq_len`. */
  readonly openTokens: number;
}

/** Numbers of rows, pack by pack, in the order in which their last row comes. A row has at least one token. */
export function packRows(lengths: readonly number[], { seq_len, openTokens }: PackingSizes): number[][] {
  const packs: number[][] = [];
  const open = new OpenPacks(lengths.length);
  let held = 0;
  for (const [row, length] of lengths.entries()) {
    const tokens = Math.min(length, seq_len);
    while (held + tokens > openTokens) {
      const fullest = open.withLeastRoom();
      if (fullest === null) break;
      held -= seq_len - open.roomOf(fullest);
      open.close(fullest);
    }
    const pack = open.firstWithRoom(tokens) ?? packs.push([]) - 1;
    packs[pack]?.push(row);
    const room = (open.roomOf(pack) || seq_len) - tokens;
    held += room > 0 ? tokens : tokens - seq_len;
    if (room > 0) open.set(pack, room);
    else open.close(pack);
  }
  const lastRow = (rows: readonly number[]) => rows.at(-1) ?? 0;
  return packs.sort((one, other) => lastRow(one) - lastRow(other));
}

/**
 * The room that is left in each open pack, 0 in any other. Two trees over the packs in their order, of the most and of the
 * least room below each node: a pack is found in as many looks as a tree is high, however many are open.
 */
class OpenPacks {
  readonly #leaves: number;
  readonly #most: Int32Array;
  readonly #least: Int32Array;

  constructor(packs: number) {
    this.#leaves = 2 ** Math.ceil(Math.log2(Math.max(1, packs)));
    this.#most = new Int32Array(2 * this.#leaves);
    this.#least = new Int32Array(2 * this.#leaves).fill(NONE);
  }

  roomOf(pack: number): number {
    return this.#most[this.#leaves + pack] ?? 0;
  }

  set(pack: number, room: number): void {
    this.#put(pack, room, room);
  }

  close(pack: number): void {
    this.#put(pack, 0, NONE);
  }

  /** The first that has so much; null: none has. */
  firstWithRoom(room: number): number | null {
    return this.#find((node) => (this.#most[node] ?? 0) >= room);
  }

  /** The first of the fullest; null: none is open. */
  withLeastRoom(): number | null {
    const [, least = NONE] = this.#least;
    return least === NONE ? null : this.#find((node) => this.#least[node] === least);
  }

  #find(isBelow: (node: number) => boolean): number | null {
    if (!isBelow(1)) return null;
    let node = 1;
    while (node < this.#leaves) node = isBelow(2 * node) ? 2 * node : 2 * node + 1;
    return node - this.#leaves;
  }

  #put(pack: number, most: number, least: number): void {
    let node = this.#leaves + pack;
    this.#most[node] = most;
    this.#least[node] = least;
    for (node >>= 1; node > 0; node >>= 1) {
      this.#most[node] = Math.max(this.#most[2 * node] ?? 0, this.#most[2 * node + 1] ?? 0);
      this.#least[node] = Math.min(this.#least[2 * node] ?? NONE, this.#least[2 * node + 1] ?? NONE);
    }
  }
}

/** No room that a pack could have. */
const NONE = 2 ** 31 - 1;

/** The packs of one rank: every `ranks`-th. Each rank has as many, the last of some are null: nothing is left for them. */
export function packsOfRank<Pack>(packs: readonly Pack[], rank: number, ranks: number): (Pack | null)[] {
  const each = Math.max(1, Math.ceil(packs.length / ranks));
  return Array.from({ length: each }, (_, at) => packs[at * ranks + rank] ?? null);
}
