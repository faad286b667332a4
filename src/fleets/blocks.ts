/**
 * Places at replicas that objects hold for their calls: with a call, or free for a while. In memory only: after a
 * restart, each holder declares its places with its next request.
 *
 * Invariants. A request of a holder replaces what it had. If a holder is killed, its places with a call count until the
 * call's time limit, and its free places until the block expires.
 */
import { renewalMs, validMs } from "./block-times.ts";
import type { BlockAsk } from "./rpc.ts";

interface Held {
  readonly replica_id: string;
  readonly until: number;
}

interface Holder {
  readonly request: number;
  readonly places: readonly Held[];
}

export type DeclaredBlock = Pick<BlockAsk, "holder" | "request" | "calls" | "idle">;

/** Holders are counted over this time at least, and twice this time at most. */
const COUNTED_MS = 5000;
/** A call that found no place asks again within this time. */
const FULL_MS = 2000;
/** Clocks of two objects may differ by this much in the time that a block is valid. */
const GRACE_MS = 1000;

export class Blocks {
  readonly #holders = new Map<string, Holder>();
  readonly #counts = new Map<string, number>();
  /** The earliest `until` of the places, or a time before it. */
  #nextAt = Number.POSITIVE_INFINITY;
  /** Until when free places are given back soon. */
  #fullUntil = 0;
  #heard = new Set<string>();
  #heardBefore = new Set<string>();
  #heardFrom = 0;

  /** Places of a replica. */
  of(replica: string): number {
    return this.#counts.get(replica) ?? 0;
  }

  /** The least time between two reports of a holder. */
  get everyMs(): number {
    return renewalMs(Math.max(this.#heard.size, this.#heardBefore.size));
  }

  /** The earliest time at which a place ends by itself; infinity: there is none. */
  get nextAt(): number {
    return this.#nextAt;
  }

  isLate({ holder, request }: DeclaredBlock): boolean {
    return request <= (this.#holders.get(holder)?.request ?? 0);
  }

  /** What the holder has now. `idle`: the replicas of its places without a call. */
  put({ holder, request, calls, idle }: DeclaredBlock, now: number): void {
    this.#note(holder, now);
    const freeUntil = now + validMs(this.everyMs) + GRACE_MS;
    const places = [
      ...calls.map(({ replica_id, left_ms }): Held => ({ replica_id, until: now + left_ms })),
      ...idle.map((replica_id): Held => ({ replica_id, until: freeUntil })),
    ];
    this.#set(holder, { request, places });
  }

  /** Whether calls wait because replicas are at their limits. `waits`: one does now. */
  isFull(now: number, waits: boolean): boolean {
    if (waits) this.#fullUntil = now + FULL_MS;
    return now < this.#fullUntil;
  }

  #note(holder: string, now: number): void {
    if (now - this.#heardFrom >= COUNTED_MS) {
      this.#heardBefore = now - this.#heardFrom < 2 * COUNTED_MS ? this.#heard : new Set();
      this.#heard = new Set();
      this.#heardFrom = now;
    }
    this.#heard.add(holder);
  }

  #set(name: string, after: Holder | null): void {
    for (const { replica_id } of this.#holders.get(name)?.places ?? []) this.#add(replica_id, -1);
    if (after === null) this.#holders.delete(name);
    else this.#holders.set(name, after);
    for (const { replica_id, until } of after?.places ?? []) {
      this.#add(replica_id, 1);
      this.#nextAt = Math.min(this.#nextAt, until);
    }
  }

  #add(replica: string, more: number): void {
    const count = this.of(replica) + more;
    if (count === 0) this.#counts.delete(replica);
    else this.#counts.set(replica, count);
  }

  expire(now: number): void {
    if (now < this.#nextAt) return;
    this.#nextAt = Number.POSITIVE_INFINITY;
    for (const [name, { request, places }] of [...this.#holders]) {
      const left = places.filter(({ until }) => until > now);
      const isHeard = this.#heard.has(name) || this.#heardBefore.has(name);
      if (left.length < places.length || left.length === 0) {
        this.#set(name, left.length === 0 && !isHeard ? null : { request, places: left });
      } else for (const { until } of left) this.#nextAt = Math.min(this.#nextAt, until);
    }
  }

  /** For a replica that was removed. */
  forget(replica: string): void {
    for (const [name, { request, places }] of [...this.#holders]) {
      this.#set(name, { request, places: places.filter(({ replica_id }) => replica_id !== replica) });
    }
  }
}
