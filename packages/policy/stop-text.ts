/**
 * The text of one generation as it comes, cut at the first stop string.
 *
 * Invariants. Text that could still become a stop string is held back, so no part of one is ever handed out, wherever
 * tokens and chunks end. What is handed out, joined, is the whole text. After a stop nothing more comes.
 */

/** What one piece of text brought. */
export interface Released {
  /** Safe to show. */
  readonly text: string;
  /** The stop string that was met; null while none was. */
  readonly stop: string | null;
}

export class StopText {
  readonly #stops: readonly string[];
  readonly #keepStop: boolean;
  #held = "";

  constructor(stops: readonly string[], keepStop: boolean) {
    this.#stops = stops;
    this.#keepStop = keepStop;
  }

  push(piece: string): Released {
    const text = this.#held + piece;
    const met = this.#firstStop(text);
    if (met !== null) {
      this.#held = "";
      const end = met.at + (this.#keepStop ? met.stop.length : 0);
      return { text: text.slice(0, end), stop: met.stop };
    }
    const safe = text.length - longestBeginning(text, this.#stops);
    this.#held = text.slice(safe);
    return { text: text.slice(0, safe), stop: null };
  }

  /** What was held back, when no more text comes. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }

  #firstStop(text: string): { at: number; stop: string } | null {
    const met = this.#stops.map((stop) => ({ at: text.indexOf(stop), stop })).filter(({ at }) => at >= 0);
    return met.sort((a, b) => a.at - b.at)[0] ?? null;
  }
}

/** How many characters at the end of the text begin one of these strings without finishing it. */
export function longestBeginning(text: string, strings: readonly string[]): number {
  const lengths = strings.map((string) => {
    for (let length = Math.min(string.length - 1, text.length); length > 0; length -= 1) {
      if (text.endsWith(string.slice(0, length))) return length;
    }
    return 0;
  });
  return Math.max(0, ...lengths);
}
