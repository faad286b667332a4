/** Memory and computing time for one reply. A reply waits for it if many large ones arrive at once. */
export interface ReplyReservation {
  /** The most characters that a reply may have: memory for more would never be free. */
  readonly most: number;
  /** True while the reply waits for memory: then its server is not to blame if the time ends. */
  readonly isWaiting: () => boolean;
  /**
   * Resolves when this many characters of it may be kept; null: at once. `most`: how many it can have in all. Throws if
   * `signal` aborts the wait.
   */
  readonly grow: (characters: number, most: number, signal: AbortSignal) => Promise<void> | null;
  /** Resolves when a reply of this many characters may be parsed; null: at once. */
  readonly turn: (characters: number) => Promise<void> | null;
  /** Frees the memory: the text was parsed or dropped. Further calls do nothing. */
  readonly leave: () => void;
}
