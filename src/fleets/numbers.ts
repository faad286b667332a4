/** Numbers that only grow, whatever falls: from blocks of which the disk knows. One write a block. */
const BLOCK = 10_000;

export class Numbers {
  readonly #reserved: () => number;
  readonly #reserve: (upTo: number) => void;
  #next = 0;
  #end = 0;

  /** `reserved`: the last number that was reserved, 0 for none; `reserve` keeps it. Asked when one is needed first. */
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
