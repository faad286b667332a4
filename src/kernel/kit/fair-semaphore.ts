/**
 * Bounds resources of a process and shares them between organisations: semaphores for costly work, and memory for pages
 * that are not read yet (`UnreadPages`). Several of them may draw on one total (`Sums`).
 *
 * Invariants. The total is never exceeded, but by `exceed`. An organisation gets more only if at least as much is free as it then holds.
 * So an organisation that is alone gets half, and the others always find something free. A holder that does not renew
 * for too long loses its place: the runtime may end an invocation without running its cleanup.
 */

interface Held {
  readonly org: string;
  /** Number of places, or bytes. */
  readonly size: number;
}

/** The sums that all organisations hold together, and each one. They may be a part of larger sums, which count them too. */
export class Sums {
  readonly #mostOf: () => number;
  readonly #whole: Sums | null;
  readonly #own = new Map<string, number>();
  /** They give back what is held by nobody any more. */
  readonly #sweepers: ((now: number) => void)[] = [];
  #all = 0;

  /** `mostOf`: the total. If it changes, what is held stays. */
  constructor(mostOf: () => number, whole: Sums | null = null) {
    this.#mostOf = mostOf;
    this.#whole = whole;
  }

  get most(): number {
    return this.#mostOf();
  }

  get all(): number {
    return this.#all;
  }

  /** The most that one organisation can get while nobody else holds anything. */
  get mostOfOne(): number {
    return Math.min(this.most / 2, this.#whole?.mostOfOne ?? Number.POSITIVE_INFINITY);
  }

  onSweep(sweep: (now: number) => void): void {
    this.#sweepers.push(sweep);
    this.#whole?.onSweep(sweep);
  }

  mayHold(org: string, more: number, now: number): boolean {
    if (this.#fits(org, more)) return true;
    this.#sweep(now);
    return this.#fits(org, more);
  }

  #fits(org: string, more: number): boolean {
    const fits = (this.#own.get(org) ?? 0) + more <= this.most - this.#all;
    return fits && (this.#whole === null || this.#whole.#fits(org, more));
  }

  #sweep(now: number): void {
    if (this.#whole !== null) this.#whole.#sweep(now);
    else for (const sweep of this.#sweepers) sweep(now);
  }

  add(org: string, size: number): void {
    this.#whole?.add(org, size);
    const own = (this.#own.get(org) ?? 0) + size;
    this.#all += size;
    if (own === 0) this.#own.delete(org);
    else this.#own.set(org, own);
  }
}

export interface Reservation {
  /** Renews the place: its holder is still working. */
  readonly stay: (now: number) => void;
  /** Enlarges the place; false if there is not enough left. */
  readonly grow: (by: number, now: number) => boolean;
  /** Enlarges the place even if there is not enough left. */
  readonly exceed: (by: number, now: number) => void;
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

export class FairSemaphore {
  readonly #sums: Sums;
  readonly #silenceMs: number;
  /** With the last renewal of each holder in epoch milliseconds; the longest ago comes first. */
  readonly #held = new Map<symbol, Held & { readonly seenAt: number }>();

  /** `most`: the total, or the sums that others draw on too. */
  constructor(most: number | Sums, silenceMs: number) {
    this.#sums = sumsOf(most);
    this.#silenceMs = silenceMs;
    this.#sums.onSweep((now) => this.#dropSilent(now));
  }

  /** The most that one organisation can get while nobody else holds anything. */
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

  #mayHold(org: string, more: number, now: number): boolean {
    return more <= 0 || this.#sums.mayHold(org, more, now);
  }

  /** Like `take`, but waits up to `ms` milliseconds; null if nothing became free. */
  wait(org: string, ms: number, waiting?: Waiting, size = 1): Promise<Reservation | null> {
    return waitFor((now) => this.take(org, now, size), ms, waiting);
  }

  /** Null if the organisation may hold no more now. */
  take(org: string, now: number, size = 1): Reservation | null {
    if (!this.#mayHold(org, size, now)) return null;
    const holder = Symbol();
    this.#hold(holder, { org, size, seenAt: now });
    return {
      stay: (at) => this.#change(holder, 0, at),
      grow: (by, at) => {
        const fits = this.#mayHold(org, by, at);
        if (fits) this.#change(holder, by, at);
        return fits;
      },
      exceed: (by, at) => this.#change(holder, by, at),
      leave: () => this.#drop(holder),
    };
  }

  #hold(holder: symbol, held: Held & { readonly seenAt: number }): void {
    this.#held.set(holder, held);
    this.#sums.add(held.org, held.size);
  }

  #drop(holder: symbol): void {
    const held = this.#held.get(holder);
    if (held === undefined) return;
    this.#held.delete(holder);
    this.#sums.add(held.org, -held.size);
  }

  #change(holder: symbol, by: number, seenAt: number): void {
    const held = this.#held.get(holder);
    if (held === undefined) return;
    this.#drop(holder);
    this.#hold(holder, { org: held.org, size: held.size + by, seenAt });
  }

  #dropSilent(now: number): void {
    for (const [holder, { seenAt }] of this.#held) {
      if (now - seenAt <= this.#silenceMs) break;
      this.#drop(holder);
    }
  }
}

function sumsOf(most: number | Sums): Sums {
  return typeof most === "number" ? new Sums(() => most) : most;
}

/**
 * Finished pages that wait for their readers, within a maximum number of bytes.
 *
 * Invariants. Slow readers do not block other readers. If memory runs out, a page is dropped that has waited for at
 * least `keptMs`: the oldest page of the organisation that holds the most. Its reader gets an error before the last
 * byte, never a page that looks complete. A page larger than the maximum is held only while there is no other page. If
 * others that draw on the same total need memory, pages of at least `lostMs` are dropped.
 */
export class UnreadPages {
  readonly #sums: Sums;
  readonly #keptMs: number;
  /** With the time when each was made, the oldest first. */
  readonly #pages = new Map<UnreadPage, number>();

  /** `most`: bytes, or the sums that others draw on too. `keptMs`: how long a page waits before another may take its memory. */
  constructor(most: number | Sums, keptMs: number, lostMs = Number.POSITIVE_INFINITY) {
    this.#sums = sumsOf(most);
    this.#keptMs = keptMs;
    this.#sums.onSweep((now) => {
      for (const [page, since] of this.#pages) if (now - since >= lostMs) page.drop();
    });
  }

  /** Null if there is not enough memory within `ms` milliseconds. */
  wait(org: string, pieces: readonly Uint8Array[], ms: number, waiting?: Waiting): Promise<UnreadPage | null> {
    return waitFor((now) => this.hold(org, pieces, now), ms, waiting);
  }

  /** Null if there is not enough memory. `now` is epoch milliseconds. */
  hold(org: string, pieces: readonly Uint8Array[], now: number): UnreadPage | null {
    const page = new UnreadPage(org, pieces, (bytes) => {
      this.#sums.add(org, -bytes);
      if (page.size === 0) this.#pages.delete(page);
    });
    const fits = () => this.#pages.size === 0 || this.#sums.mayHold(org, page.size, now) || null;
    if (this.makeRoom(now, fits) === null) return null;
    this.#sums.add(org, page.size);
    this.#pages.set(page, now);
    return page;
  }

  /** What `take` gives; until it gives something, pages are dropped that have waited long enough. */
  makeRoom<T>(now: number, take: () => T | null): T | null {
    for (;;) {
      const taken = take();
      if (taken !== null) return taken;
      const goes = this.#nextToGo(now);
      if (goes === undefined) return null;
      goes.drop();
    }
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
  readonly #freed: (bytes: number) => void;
  #pieces: readonly Uint8Array[];
  #sent = 0;
  #dropped = false;
  #size: number;

  /** `freed`: called with each number of bytes that it no longer holds. */
  constructor(org: string, pieces: readonly Uint8Array[], freed: (bytes: number) => void) {
    this.org = org;
    this.#pieces = pieces;
    this.#freed = freed;
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
    this.#free(piece.length);
    return piece;
  }

  /** Frees the page; the rest of it is not read. */
  drop(): void {
    this.#dropped ||= this.#sent < this.#pieces.length;
    this.#pieces = [];
    this.#sent = 0;
    this.#free(this.#size);
  }

  #free(bytes: number): void {
    this.#size -= bytes;
    this.#freed(bytes);
  }
}
