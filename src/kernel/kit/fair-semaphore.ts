/**
 * Bounds resources of a process and shares them between organisations: semaphores for costly work (`Places`), and
 * memory for pages that are not read yet (`UnreadPages`).
 *
 * Invariants. The total is never exceeded. An organisation gets more only if at least as much is free as it then holds.
 * So an organisation that is alone gets half, and the others always find something free. A holder that does not renew
 * for too long loses its place: the runtime may end an invocation without running its cleanup.
 */

interface Held {
  readonly org: string;
  /** Number of places, or bytes. */
  readonly size: number;
}

/** The sums that all organisations hold together, and each one. */
class Sums {
  readonly #most: number;
  readonly #own = new Map<string, number>();
  #all = 0;

  constructor(most: number) {
    this.#most = most;
  }

  mayHold(org: string, more: number): boolean {
    return (this.#own.get(org) ?? 0) + more <= this.#most - this.#all;
  }

  add(org: string, size: number): void {
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

  constructor(most: number, silenceMs: number) {
    this.#sums = new Sums(most);
    this.#silenceMs = silenceMs;
  }

  /** Like `take`, but waits up to `ms` milliseconds; null if nothing became free. */
  wait(org: string, ms: number, waiting?: Waiting, size = 1): Promise<Reservation | null> {
    return waitFor((now) => this.take(org, now, size), ms, waiting);
  }

  /** Null if the organisation may hold no more now. */
  take(org: string, now: number, size = 1): Reservation | null {
    this.#dropSilent(now);
    if (!this.#sums.mayHold(org, size)) return null;
    const holder = Symbol();
    this.#hold(holder, { org, size, seenAt: now });
    return {
      stay: (at) => this.#change(holder, 0, at),
      grow: (by, at) => {
        this.#dropSilent(at);
        const fits = this.#sums.mayHold(org, by);
        if (fits) this.#change(holder, by, at);
        return fits;
      },
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

/**
 * Finished pages that wait for their readers, within a maximum number of bytes in this process.
 *
 * Invariants. Slow readers do not block other readers. If memory runs out, a page is dropped that has waited for at
 * least `keptMs`: the oldest page of the organisation that holds the most. Its reader gets an error before the last
 * byte, never a page that looks complete. A page larger than the maximum is held only while there is no other page.
 */
export class UnreadPages {
  readonly #most: number;
  readonly #keptMs: number;
  /** With the time when each was made, the oldest first. */
  readonly #pages = new Map<UnreadPage, number>();

  /** `most`: bytes. `keptMs`: how long a page waits before another page may take its memory. */
  constructor(most: number, keptMs: number) {
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
    return this.#pages.size === 0 || sums.mayHold(org, size);
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
