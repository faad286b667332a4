/**
 * How many do the same costly thing at once in this process (`Semaphore`), and how much memory holds pages that nobody
 * has read yet (`UnreadPages`).
 *
 * Invariants. Never more than so many places are held. One that shows no sign of life for too long is nobody's any more: the
 * runtime may end an invocation without running what it left to do.
 */

export interface Place {
  /** Says that its holder is still at it. */
  readonly stay: (now: number) => void;
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

export class Semaphore {
  readonly #most: number;
  readonly #silenceMs: number;
  /** When each holder was last heard of, in epoch milliseconds. */
  readonly #held = new Map<symbol, number>();

  constructor(most: number, silenceMs: number) {
    this.#most = most;
    this.#silenceMs = silenceMs;
  }

  /** The same, asked until there is one or so many milliseconds are over. */
  wait(ms: number, waiting?: Waiting): Promise<Place | null> {
    return waitFor((now) => this.take(now), ms, waiting);
  }

  /** Null where all are held. */
  take(now: number): Place | null {
    for (const [holder, heard] of this.#held) {
      if (now - heard > this.#silenceMs) this.#held.delete(holder);
    }
    if (this.#held.size >= this.#most) return null;
    const holder = Symbol();
    this.#held.set(holder, now);
    return {
      stay: (at) => {
        if (this.#held.has(holder)) this.#held.set(holder, at);
      },
      leave: () => this.#held.delete(holder),
    };
  }
}

/**
 * Pages that are made and wait for their readers, in so many bytes of this process and no more.
 *
 * Invariants. However slowly some read, others are sent their pages: where there is no room, the page that has waited the longest
 * goes, once it has waited for as long as it may. Whoever reads it meets its end before its last byte, never a page that looks
 * whole. A page that is larger than all the room there is is held alone.
 */
export class UnreadPages {
  readonly #most: number;
  readonly #keptMs: number;
  /** The oldest first. */
  readonly #pages = new Map<UnreadPage, number>();

  /** `most`: bytes; `keptMs`: how long a page waits before another may take its room. */
  constructor(most: number, keptMs: number) {
    this.#most = most;
    this.#keptMs = keptMs;
  }

  /** Null where there is no room within so many milliseconds. */
  wait(pieces: readonly Uint8Array[], ms: number, waiting?: Waiting): Promise<UnreadPage | null> {
    return waitFor((now) => this.hold(pieces, now), ms, waiting);
  }

  /** Null where there is no room. `now` is epoch milliseconds. */
  hold(pieces: readonly Uint8Array[], now: number): UnreadPage | null {
    const page = new UnreadPage(pieces, () => this.#pages.delete(page));
    for (const [held, since] of this.#pages) {
      if (this.#fits(page) || now - since < this.#keptMs) break;
      held.drop();
    }
    if (!this.#fits(page)) return null;
    this.#pages.set(page, now);
    return page;
  }

  #fits(page: UnreadPage): boolean {
    let bytes = page.bytes;
    for (const held of this.#pages.keys()) bytes += held.bytes;
    return bytes <= this.#most || this.#pages.size === 0;
  }
}

export class UnreadPage {
  readonly #gone: () => void;
  #pieces: readonly Uint8Array[];
  #sent = 0;
  #dropped = false;
  #bytes: number;

  constructor(pieces: readonly Uint8Array[], gone: () => void) {
    this.#pieces = pieces;
    this.#gone = gone;
    this.#bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  }

  /** Not sent yet. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The next piece; null after the last. Throws where others were given the room of the rest. */
  next(): Uint8Array | null {
    if (this.#dropped) throw new Error("others needed the room of this page: ask for it again");
    const piece = this.#pieces[this.#sent];
    if (piece === undefined) {
      this.drop();
      return null;
    }
    this.#sent += 1;
    this.#bytes -= piece.length;
    return piece;
  }

  /** Nobody reads on. */
  drop(): void {
    this.#dropped ||= this.#sent < this.#pieces.length;
    this.#pieces = [];
    this.#sent = 0;
    this.#bytes = 0;
    this.#gone();
  }
}
