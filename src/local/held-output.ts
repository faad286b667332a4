/** What a Worker prints, kept back until it is known whether somebody else says it in one plain line. */
export class HeldOutput {
  readonly #write: (line: string) => void;
  #held: string[] | null = [];

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  line(text: string): void {
    if (this.#held === null) this.#write(text);
    else this.#held.push(text);
  }

  /** What was kept, and from now on every line at once. */
  release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const text of held) this.#write(text);
  }
}
