/** The virtual clock of the simulation, and a heap. */

/** Items by time, the earliest first; items of the same time in the order in which they were added. */
export class Heap<Item> {
  readonly #times: number[] = [];
  readonly #order: number[] = [];
  readonly #items: Item[] = [];
  #added = 0;

  get size(): number {
    return this.#items.length;
  }

  /** The time of the first item; infinity without one. */
  get first(): number {
    return this.#times[0] ?? Number.POSITIVE_INFINITY;
  }

  peek(): Item | undefined {
    return this.#items[0];
  }

  add(time: number, item: Item): void {
    let at = this.#items.length;
    const order = this.#added;
    this.#added += 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#isBefore(parent, time, order)) break;
      this.#copy(parent, at);
      at = parent;
    }
    this.#set(at, time, order, item);
  }

  take(): Item | undefined {
    const taken = this.#items[0];
    const [time, order, item] = [this.#times.pop(), this.#order.pop(), this.#items.pop()];
    if (time === undefined || order === undefined || item === undefined || this.#items.length === 0) return taken;
    const size = this.#items.length;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      const right = child + 1;
      if (right < size && !this.#isBefore(child, this.#times[right] ?? 0, this.#order[right] ?? 0)) child = right;
      if (!this.#isBefore(child, time, order)) break;
      this.#copy(child, at);
      at = child;
    }
    this.#set(at, time, order, item);
    return taken;
  }

  #isBefore(at: number, time: number, order: number): boolean {
    const own = this.#times[at] ?? 0;
    return own < time || (own === time && (this.#order[at] ?? 0) < order);
  }

  #copy(from: number, to: number): void {
    const item = this.#items[from];
    if (item !== undefined) this.#set(to, this.#times[from] ?? 0, this.#order[from] ?? 0, item);
  }

  #set(at: number, time: number, order: number, item: Item): void {
    this.#times[at] = time;
    this.#order[at] = order;
    this.#items[at] = item;
  }
}

/** What is going to happen. Times are milliseconds from any moment; only `run` advances the clock. */
export class Agenda {
  readonly #due = new Heap<() => void>();
  now: number;

  constructor(start: number) {
    this.now = start;
  }

  at(time: number, act: () => void): void {
    this.#due.add(Math.max(time, this.now), act);
  }

  in(ms: number, act: () => void): void {
    this.#due.add(this.now + ms, act);
  }

  /** Until the time, or until nothing is left. */
  run(until: number): void {
    while (this.#due.first <= until) {
      this.now = this.#due.first;
      this.#due.take()?.();
    }
  }
}
