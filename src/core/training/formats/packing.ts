/**
 * Chooses which rows go into one packed sequence, by their lengths alone: first fit, in the order of the batch.
 *
 * Invariants. Each row is in one pack. A pack has at most `seq_len` tokens; a longer row is cut to it. All open packs
 * together never have more than `openTokens` tokens, so rows can be packed as they arrive. The same lengths always give
 * the same packs. The work is O(n log n) in the number of rows.
 */

export interface PackingSizes {
  readonly seq_len: number;
  /** At least `seq_len`. */
  readonly openTokens: number;
}

/** Row numbers, pack by pack, in the order of their last rows. A row has at least one token. */
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
 * The free space of each open pack, 0 for all others. Two trees over the packs in their order have the largest and the
 * smallest free space below each node, so a pack is found in as many steps as a tree is high.
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

  /** The first pack with so much free space; null if there is none. */
  firstWithRoom(room: number): number | null {
    return this.#find((node) => (this.#most[node] ?? 0) >= room);
  }

  /** The first of the fullest packs; null if none is open. */
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

/** Larger than any free space. */
const NONE = 2 ** 31 - 1;

/** The packs of one rank: every `ranks`-th. All ranks have equally many; missing ones are null. */
export function packsOfRank<Pack>(packs: readonly Pack[], rank: number, ranks: number): (Pack | null)[] {
  const each = Math.max(1, Math.ceil(packs.length / ranks));
  return Array.from({ length: each }, (_, at) => packs[at * ranks + rank] ?? null);
}
