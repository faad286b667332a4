/** Counts requests by kind of object: of all together, and of the busiest single one. */

/** Busiest means the most requests in this time. */
export const BUCKET_MS = 10_000;

/** Counts of one object, or of all of a kind. */
export class Meter {
  readonly #kind: Meter | null;
  #bucket = 0;
  #inBucket = 0;
  /** The most in one bucket, by this meter or one of its kind. */
  #most = 0;
  total = 0;

  constructor(kind: Meter | null) {
    this.#kind = kind;
  }

  add(now: number, count: number): void {
    const bucket = Math.floor(now / BUCKET_MS);
    if (bucket !== this.#bucket) {
      this.#bucket = bucket;
      this.#inBucket = 0;
    }
    this.#inBucket += count;
    this.total += count;
    if (this.#inBucket > this.#most) this.#most = this.#inBucket;
    if (this.#kind !== null && this.#inBucket > this.#kind.#most) this.#kind.#most = this.#inBucket;
  }

  /** Per second, in the busiest bucket. */
  get busiest(): number {
    return this.#most / (BUCKET_MS / 1000);
  }
}

/** The kinds of objects that the simulation plays. */
export const KINDS = ["run", "gatherer", "rollout", "endpoint", "account", "audit"] as const;
/** A fleet is simulated besides: its requests cost nothing here. */
export type Kind = (typeof KINDS)[number] | "fleet";

/** Everything that is counted, from `from` on. */
export class Traffic {
  readonly #from: number;
  readonly #hottest = new Map<Kind, Meter>();
  readonly #sums = new Map<Kind, number>();
  readonly #counts = new Map<string, number>();

  constructor(from: number) {
    this.#from = from;
  }

  /** The meter of one object. */
  meter(kind: Kind): Meter {
    return new Meter(this.#ofKind(kind));
  }

  request(kind: Kind, meter: Meter, now: number, count = 1): void {
    if (now < this.#from) return;
    meter.add(now, count);
    this.#sums.set(kind, (this.#sums.get(kind) ?? 0) + count);
  }

  /** Anything that has no object of its own: statements, messages, rows. */
  count(what: string, now: number, count = 1): void {
    if (now < this.#from) return;
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + count);
  }

  sum(kind: Kind): number {
    return this.#sums.get(kind) ?? 0;
  }

  busiest(kind: Kind): number {
    return this.#ofKind(kind).busiest;
  }

  counted(what: string): number {
    return this.#counts.get(what) ?? 0;
  }

  /** The names of counts that begin like this. */
  names(beginning: string): string[] {
    return [...this.#counts.keys()].filter((name) => name.startsWith(beginning)).toSorted();
  }

  #ofKind(kind: Kind): Meter {
    const known = this.#hottest.get(kind);
    if (known !== undefined) return known;
    const made = new Meter(null);
    this.#hottest.set(kind, made);
    return made;
  }
}
