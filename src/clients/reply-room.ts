/** What a reply waits for where many large ones come at once. */
export interface ReplyRoom {
  /**
   * Resolves when so many characters of it may be kept; null: at once. It will have `most` of them at most. Throws when
   * `signal` ends the wait.
   */
  readonly grow: (characters: number, most: number, signal: AbortSignal) => Promise<void> | null;
  /** Resolves when a reply of so many characters may be read as JSON; null: at once. */
  readonly turn: (characters: number) => Promise<void> | null;
  /** Nothing of its text is kept any more. A second time it does nothing. */
  readonly leave: () => void;
}
