/** Numbers that only grow, even after a crash: they come from blocks that are reserved on disk in one write each. */
const BLOCK = 10_000;

export class Numbers {
  readonly #reserved: () => number;
  readonly #reserve: (upTo: number) => void;
  #next = 0;
  #end = 0;

  /** `reserved` returns the last reserved number, or 0; `reserve` stores it. First called when a number is needed. */
  constructor(reserved: () => number, reserve: (upTo: number) => void) {
    this.#reserved = reserved;
    this.#reserve = reserve;
  }

  next(): number {
    return this.take(1);
  }

  /** The first of so many numbers in a row. */
  take(count: number): number {
    if (this.#end - this.#next < count) {
      this.#next = this.#reserved();
      this.#end = this.#next + Math.max(BLOCK, count);
      this.#reserve(this.#end);
    }
    const first = this.#next + 1;
    this.#next += count;
    return first;
  }
}
