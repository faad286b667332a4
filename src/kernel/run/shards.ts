/**
 * Assigns rollouts to the run's shards (objects). Up to `LIMITS.rolloutsPerShard` share one, preferably rollouts that
 * are dispatched one after the other. A shard slot that becomes free gets the run's next rollout.
 *
 * Invariants. Shards are numbered from 1, and each rollout's row has its number. The current occupation is only in
 * memory: a fresh instance of the run begins with new shards, and the earlier ones finish the rollouts they have. No
 * shard gets more than `LIMITS.rolloutsPerShardInAll`, since it stores what they left until the run's end.
 */
import { LIMITS } from "../../contract/limits.ts";

interface ShardSlots {
  free: number;
  /** How many more rollouts it may get in all. */
  left: number;
}

export class Shards {
  readonly #shardSlots = new Map<number, ShardSlots>();
  /** The shards with that many free slots, by that number. */
  readonly #free = Array.from({ length: LIMITS.rolloutsPerShard + 1 }, () => new Set<number>());
  #last = 0;

  /** The shard of the next rollout. `begin` returns the number of a new one. */
  take(begin: () => number): number {
    const shard = this.#next() ?? this.#add(begin());
    this.#last = shard;
    this.#change(shard, -1);
    return shard;
  }

  /** A rollout of the shard has reported. */
  leave(shard: number | null): void {
    this.#last = 0;
    if (shard !== null) this.#change(shard, 1);
  }

  /** A rollout of the shard was given up: the shard may never answer, and gets no other rollout. */
  drop(shard: number | null): void {
    const shardSlots = shard === null ? undefined : this.#shardSlots.get(shard);
    if (shard === null || shardSlots === undefined) return;
    this.#free[shardSlots.free]?.delete(shard);
    this.#shardSlots.delete(shard);
    this.#last = 0;
  }

  /** Must be called when writes are rolled back: the occupation is then unknown. */
  forget(): void {
    this.#shardSlots.clear();
    for (const shards of this.#free) shards.clear();
  }

  /** The shard of the previous rollout if it has a free slot, so that a group stays together; else the emptiest. */
  #next(): number | undefined {
    if ((this.#shardSlots.get(this.#last)?.free ?? 0) > 0) return this.#last;
    const most = this.#free.findLast((shards, free) => free > 0 && shards.size > 0);
    return most?.values().next().value;
  }

  #add(shard: number): number {
    const { rolloutsPerShard: free, rolloutsPerShardInAll: left } = LIMITS;
    this.#shardSlots.set(shard, { free, left });
    this.#free[free]?.add(shard);
    return shard;
  }

  #change(shard: number, by: 1 | -1): void {
    const shardSlots = this.#shardSlots.get(shard);
    if (shardSlots === undefined) return;
    this.#free[shardSlots.free]?.delete(shard);
    shardSlots.free += by;
    if (by === -1) shardSlots.left -= 1;
    if (shardSlots.left > 0) this.#free[shardSlots.free]?.add(shard);
    else this.#shardSlots.delete(shard);
  }
}
