/**
 * Pages that are made and wait for their readers, in so many bytes of this process and no more.
 *
 * Invariants. However slowly some read, others are sent their pages: where there is no room, the page that has waited the longest
 * goes, once it has waited for as long as it may. Whoever reads it meets its end before its last byte, never a page that looks
 * whole. A page that is larger than all the room there is is held alone.
 */
import { type Waiting, waitFor } from "../kit/places.ts";

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
