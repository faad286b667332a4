/**
 * Bounds resources of a process and shares them between organisations: semaphores for costly work, memory for texts of
 * unknown size (`GrowingMemory`), and memory for pages that are not read yet (`UnreadPages`).
 *
 * Invariants. The total is never exceeded. An organisation gets more only if at least as much is free as it then holds.
 * So an organisation that is alone gets half, and the others always find something free. A holder that does not renew for
 * too long loses its place, because the runtime may end an invocation without running its cleanup; if it renews after all,
 * it is counted again.
 */

/** A total, or what says how much it is now. */
type Total = number | (() => number);

/** What all organisations hold together, and each one. Several may have a common total, in which they share nothing else. */
export class Sums {
  readonly #most: Total;
  readonly #whole: Sums | null;
  readonly #own = new Map<string, number>();
  /** They give back what silent holders hold. */
  readonly #sweepers: ((now: number) => void)[] = [];
  #all = 0;

  constructor(most: Total, whole: Sums | null = null) {
    this.#most = most;
    this.#whole = whole;
  }

  onSweep(sweep: (now: number) => void): void {
    this.#sweepers.push(sweep);
    this.#whole?.onSweep(sweep);
  }

  get most(): number {
    return totalNow(this.#most);
  }

  get all(): number {
    return this.#all;
  }

  /** The maximum of one organisation that takes several places while no other holds any. */
  get mostOfOne(): number {
    return Math.min(this.most / 2, this.#whole?.most ?? Number.POSITIVE_INFINITY);
  }

  mayHold(org: string, more: number, now: number): boolean {
    if (this.#fits(org, more)) return true;
    for (const sweep of (this.#whole ?? this).#sweepers) sweep(now);
    return this.#fits(org, more);
  }

  #fits(org: string, more: number): boolean {
    const fits = (this.#own.get(org) ?? 0) + more <= this.most - this.#all;
    return fits && (this.#whole === null || more <= this.#whole.most - this.#whole.#all);
  }

  add(org: string, size: number): void {
    this.#whole?.add(org, size);
    const own = (this.#own.get(org) ?? 0) + size;
    this.#all += size;
    if (own === 0) this.#own.delete(org);
    else this.#own.set(org, own);
  }
}

function totalNow(total: Total): number {
  return typeof total === "number" ? total : total();
}

export interface Reservation {
  /** Renews the place: its holder is still working. */
  readonly stay: (now: number) => void;
  /** Enlarges the place; false if there is not enough left. */
  readonly grow: (by: number, now: number) => boolean;
  /** Gives the place back. A second call does nothing. */
  readonly leave: () => void;
}

export interface Waiting {
  readonly now?: () => number;
  readonly pause?: (ms: number) => Promise<void>;
}

const ASK_EVERY_MS = 20;

/**
 * Polls `take` until it gives something or `ms` have passed. Another invocation may free it, and cannot notify this
 * one.
 */
export async function waitFor<T>(
  take: (now: number) => T | null,
  ms: number,
  { now = () => Date.now(), pause = (ms) => scheduler.wait(ms) }: Waiting = {},
): Promise<T | null> {
  const end = now() + ms;
  for (;;) {
    const taken = take(now());
    if (taken !== null || now() >= end) return taken;
    await pause(ASK_EVERY_MS);
  }
}

interface Holder {
  readonly org: string;
  readonly id: string | undefined;
  /** Number of places, or bytes. */
  size: number;
  /** Of its last renewal, in epoch milliseconds. */
  seenAt: number;
}

export class FairSemaphore {
  readonly #sums: Sums;
  readonly #silenceMs: number;
  /** The longest ago renewed comes first. */
  readonly #holders = new Set<Holder>();
  readonly #byId = new Map<string, Holder>();

  /** `most`: the total, or the sums that others draw on too. `silenceMs`: how long a holder may not renew its place. */
  constructor(most: number | Sums, silenceMs: number) {
    this.#sums = typeof most === "number" ? new Sums(most) : most;
    this.#silenceMs = silenceMs;
    this.#sums.onSweep((now) => this.#dropSilent(now));
  }

  /** The maximum of one organisation that takes several places while no other holds any. */
  get mostOfOne(): number {
    return this.#sums.mostOfOne;
  }

  /** What all organisations hold together. */
  get held(): number {
    return this.#sums.all;
  }

  /** The most that all organisations can get together. */
  get most(): number {
    return this.#sums.most;
  }

  /** Like `take`, but waits up to `ms` milliseconds; null if nothing became free. */
  wait(org: string, ms: number, waiting?: Waiting, size = 1): Promise<Reservation | null> {
    return waitFor((now) => this.take(org, now, size), ms, waiting);
  }

  /** Null if the organisation may hold no more now. */
  take(org: string, now: number, size = 1): Reservation | null {
    const fits = size <= 0 || this.#sums.mayHold(org, size, now);
    return fits ? this.#enter({ org, id: undefined, size, seenAt: now }) : null;
  }

  /**
   * A place of size 0, which may grow. `id`: of the holder; its earlier place, if there is one, was left behind when its
   * invocation was ended.
   */
  open(org: string, now: number, id?: string): Reservation {
    const before = this.#byId.get(id ?? "");
    if (before !== undefined) this.#drop(before);
    return this.#enter({ org, id, size: 0, seenAt: now });
  }

  #enter(holder: Holder): Reservation {
    this.#hold(holder);
    let isOver = false;
    const change = (by: number, at: number) => {
      const other = this.#byId.get(holder.id ?? "");
      if (isOver || (other !== undefined && other !== holder)) return;
      this.#drop(holder);
      holder.size += by;
      holder.seenAt = at;
      this.#hold(holder);
    };
    return {
      stay: (at) => change(0, at),
      grow: (by, at) => {
        const fits = by <= 0 || this.#sums.mayHold(holder.org, by, at);
        if (fits) change(by, at);
        return fits;
      },
      leave: () => {
        isOver = true;
        this.#drop(holder);
      },
    };
  }

  #dropSilent(now: number): void {
    for (const holder of this.#holders) {
      if (now - holder.seenAt <= this.#silenceMs) break;
      this.#drop(holder);
    }
  }

  #hold(holder: Holder): void {
    this.#holders.add(holder);
    if (holder.id !== undefined) this.#byId.set(holder.id, holder);
    this.#sums.add(holder.org, holder.size);
  }

  #drop(holder: Holder): void {
    if (!this.#holders.delete(holder)) return;
    if (holder.id !== undefined) this.#byId.delete(holder.id);
    this.#sums.add(holder.org, -holder.size);
  }
}

/** Memory for something that grows. */
export interface Growing {
  readonly stay: (now: number) => void;
  /** Enlarges it; false if there is not enough left. */
  readonly grow: (by: number, now: number) => boolean;
  readonly leave: () => void;
}

/**
 * Memory of which a few holders may have more than there is, each of another organisation; what they have beyond it is
 * not counted. So those that hold some and wait for more cannot block each other for good, and what is too large for the
 * memory, or for what small holders leave free of it, comes through.
 */
export class GrowingMemory {
  readonly bytes: FairSemaphore;
  readonly #beyond: FairSemaphore;
  readonly #largerThan: () => number;

  /** `places`: so many may have more than there is, if they hold more bytes than `largerThan`. */
  constructor(sums: Sums, silenceMs: number, places: number, largerThan: () => number = () => 0) {
    this.bytes = new FairSemaphore(sums, silenceMs);
    this.#beyond = new FairSemaphore(places, silenceMs);
    this.#largerThan = largerThan;
  }

  /** Null if there is not enough left. `id`: as for FairSemaphore. */
  take(org: string, now: number, size: number, id?: string): Growing | null {
    const held = this.open(org, now, id);
    if (held.grow(size, now)) return held;
    held.leave();
    return null;
  }

  /** The same after up to `ms` milliseconds. */
  wait(org: string, ms: number, waiting: Waiting, size: number): Promise<Growing | null> {
    return waitFor((now) => this.take(org, now, size), ms, waiting);
  }

  /** `id`: as for FairSemaphore. */
  open(org: string, now: number, id?: string): Growing {
    const held = this.bytes.open(org, now, id);
    const beyond = this.#beyond.open(org, now, id);
    let [size, isBeyond] = [0, false];
    return {
      stay: (at) => {
        held.stay(at);
        beyond.stay(at);
      },
      grow: (by, at) => {
        if (!held.grow(by, at)) {
          if (size + by <= this.#largerThan()) return false;
          isBeyond ||= beyond.grow(1, at);
          if (!isBeyond) return false;
        }
        size += by;
        return true;
      },
      leave: () => {
        held.leave();
        beyond.leave();
      },
    };
  }
}

/**
 * Finished pages that wait for their readers, within a maximum number of bytes in this process.
 *
 * Invariants. Slow readers do not block other readers. If memory runs out, a page is dropped that has waited for at
 * least `keptMs`: the oldest page of the organisation that holds the most. Its reader gets an error before the last
 * byte, never a page that looks complete. A page larger than the maximum is held only while there is no other page.
 */
export class UnreadPages {
  readonly #most: Total;
  readonly #keptMs: number;
  /** With the time when each was made, the oldest first. */
  readonly #pages = new Map<UnreadPage, number>();

  /** `most`: bytes. `keptMs`: how long a page waits before another page may take its memory. */
  constructor(most: Total, keptMs: number) {
    this.#most = most;
    this.#keptMs = keptMs;
  }

  /** Null if there is not enough memory within `ms` milliseconds. */
  wait(org: string, pieces: readonly Uint8Array[], ms: number, waiting?: Waiting): Promise<UnreadPage | null> {
    return waitFor((now) => this.hold(org, pieces, now), ms, waiting);
  }

  /** Null if there is not enough memory. `now` is epoch milliseconds. */
  hold(org: string, pieces: readonly Uint8Array[], now: number): UnreadPage | null {
    const page = new UnreadPage(org, pieces, () => this.#pages.delete(page));
    while (!this.#fits(page)) {
      const goes = this.#nextToGo(now);
      if (goes === undefined) return null;
      goes.drop();
    }
    this.#pages.set(page, now);
    return page;
  }

  #fits({ org, size }: UnreadPage): boolean {
    const sums = new Sums(this.#most);
    for (const page of this.#pages.keys()) sums.add(page.org, page.size);
    return this.#pages.size === 0 || sums.mayHold(org, size, 0);
  }

  #nextToGo(now: number): UnreadPage | undefined {
    const sizes = new Map<string, number>();
    for (const { org, size } of this.#pages.keys()) sizes.set(org, (sizes.get(org) ?? 0) + size);
    const sizeOf = ({ org }: UnreadPage) => sizes.get(org) ?? 0;
    const old = [...this.#pages].flatMap(([page, since]) => (now - since < this.#keptMs ? [] : [page]));
    // The sort is stable: of equal pages, the oldest stays first.
    return old.toSorted((one, other) => sizeOf(other) - sizeOf(one))[0];
  }
}

export class UnreadPage {
  readonly org: string;
  readonly #gone: () => void;
  #pieces: readonly Uint8Array[];
  #sent = 0;
  #dropped = false;
  #size: number;

  constructor(org: string, pieces: readonly Uint8Array[], gone: () => void) {
    this.org = org;
    this.#pieces = pieces;
    this.#gone = gone;
    this.#size = pieces.reduce((sum, piece) => sum + piece.length, 0);
  }

  /** Bytes that are not sent yet. */
  get size(): number {
    return this.#size;
  }

  /** The next piece; null after the last. Throws if the page was dropped. */
  next(): Uint8Array | null {
    if (this.#dropped) throw new Error("memory for this page ran out: request it again");
    const piece = this.#pieces[this.#sent];
    if (piece === undefined) {
      this.drop();
      return null;
    }
    this.#sent += 1;
    this.#size -= piece.length;
    return piece;
  }

  /** Frees the page; the rest of it is not read. */
  drop(): void {
    this.#dropped ||= this.#sent < this.#pieces.length;
    this.#pieces = [];
    this.#sent = 0;
    this.#size = 0;
    this.#gone();
  }
}
