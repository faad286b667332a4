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
    if (this.#next === this.#end) {
      this.#next = this.#reserved();
      this.#end = this.#next + BLOCK;
      this.#reserve(this.#end);
    }
    this.#next += 1;
    return this.#next;
  }
}
