/** The values used last, kept in the isolate's memory: what nobody asked for the longest goes first. */
export class Recent<Value> {
  readonly #room: number;
  readonly #kept = new Map<string, Value>();

  constructor(room: number) {
    this.#room = room;
  }

  get(name: string): Value | undefined {
    const value = this.#kept.get(name);
    if (value === undefined) return undefined;
    this.#kept.delete(name);
    this.#kept.set(name, value);
    return value;
  }

  set(name: string, value: Value): void {
    this.#kept.delete(name);
    this.#kept.set(name, value);
    const oldest = this.#kept.keys().next();
    if (this.#kept.size > this.#room && !oldest.done) this.#kept.delete(oldest.value);
  }
}
