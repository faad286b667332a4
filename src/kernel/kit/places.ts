/**
 * What a process has only so much of, shared by organisation: places for costly things (`Places`), and memory for pages
 * that nobody has read yet (`UnreadPages`).
 *
 * Invariants. Never more is held than there is. An organisation gets more only if at least as much was free as it then
 * holds: alone it has half, and whatever one takes, others find the rest. A holder that shows no sign of life for too long
 * loses its place: the runtime may end an invocation without running what it left to do.
 */

interface Held {
  readonly org: string;
  /** In places or bytes. */
  readonly size: number;
}

/** What all hold together, and each organisation. */
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

export interface Place {
  /** Says that its holder is still at it. */
  readonly stay: (now: number) => void;
  /** Makes it so much larger; false where there is no room for that. */
  readonly grow: (by: number, now: number) => boolean;
  /** A second time it does nothing. */
  readonly leave: () => void;
}

export interface Waiting {
  readonly now?: () => number;
  readonly pause?: (ms: number) => Promise<void>;
}

const ASK_EVERY_MS = 20;

/** What `take` gives, asked again and again: what it waits for may come to pass in another invocation, and nothing tells. */
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

export class Places {
  readonly #sums: Sums;
  readonly #silenceMs: number;
  /** With when each holder was last heard of, in epoch milliseconds: the longest ago comes first. */
  readonly #held = new Map<symbol, Held & { readonly heard: number }>();

  constructor(most: number, silenceMs: number) {
    this.#sums = new Sums(most);
    this.#silenceMs = silenceMs;
  }

  /** As `take`, asked until there is one or so many milliseconds are over. */
  wait(org: string, ms: number, waiting?: Waiting, size = 1): Promise<Place | null> {
    return waitFor((now) => this.take(org, now, size), ms, waiting);
  }

  /** Null where the organisation may hold no more now. */
  take(org: string, now: number, size = 1): Place | null {
    this.#dropSilent(now);
    if (!this.#sums.mayHold(org, size)) return null;
    const holder = Symbol();
    this.#hold(holder, { org, size, heard: now });
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

  #hold(holder: symbol, held: Held & { readonly heard: number }): void {
    this.#held.set(holder, held);
    this.#sums.add(held.org, held.size);
  }

  #drop(holder: symbol): void {
    const held = this.#held.get(holder);
    if (held === undefined) return;
    this.#held.delete(holder);
    this.#sums.add(held.org, -held.size);
  }

  #change(holder: symbol, by: number, heard: number): void {
    const held = this.#held.get(holder);
    if (held === undefined) return;
    this.#drop(holder);
    this.#hold(holder, { org: held.org, size: held.size + by, heard });
  }

  #dropSilent(now: number): void {
    for (const [holder, { heard }] of this.#held) {
      if (now - heard <= this.#silenceMs) break;
      this.#drop(holder);
    }
  }
}

/**
 * Pages that are made and wait for their readers, in so many bytes of this process and no more.
 *
 * Invariants. However slowly some read, others are sent their pages: where there is no room, a page of the organisation
 * that holds the most goes, its oldest first, once it has waited for as long as it may. Whoever reads it meets its end
 * before its last byte, never a page that looks whole. A page that is larger than all the room there is is held alone.
 */
export class UnreadPages {
  readonly #most: number;
  readonly #keptMs: number;
  /** With when they were made, the oldest first. */
  readonly #pages = new Map<UnreadPage, number>();

  /** `most`: bytes; `keptMs`: how long a page waits before another may take its room. */
  constructor(most: number, keptMs: number) {
    this.#most = most;
    this.#keptMs = keptMs;
  }

  /** Null where there is no room within so many milliseconds. */
  wait(org: string, pieces: readonly Uint8Array[], ms: number, waiting?: Waiting): Promise<UnreadPage | null> {
    return waitFor((now) => this.hold(org, pieces, now), ms, waiting);
  }

  /** Null where there is no room. `now` is epoch milliseconds. */
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
    // The first of those that are alike stays first.
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

  /** The next piece; null after the last. Throws where others were given the room of the rest. */
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

  /** Nobody reads on. */
  drop(): void {
    this.#dropped ||= this.#sent < this.#pieces.length;
    this.#pieces = [];
    this.#sent = 0;
    this.#size = 0;
    this.#gone();
  }
}
