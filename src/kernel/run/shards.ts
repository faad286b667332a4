/**
 * Assigns rollouts to the run's shards (objects). Several share one, preferably rollouts that are dispatched one after
 * the other. A place that becomes free gets the run's next rollout.
 *
 * Invariants. Shards are numbered from 1, and each rollout's row has its number. The current occupation is only in
 * memory: a fresh instance of the run begins with new shards, and the earlier ones finish the rollouts they have. No
 * shard gets more than `LIMITS.rolloutsPerShardInAll`, since it stores what they left until the run's end.
 */
import { LIMITS } from "../../contract/limits.ts";
import type { RunSpec } from "../messages/wire.ts";
import type { RunHead } from "./schema.ts";

/**
 * How many rollouts of the run one shard plays at a time. A call that is answered whole holds one of the shard's
 * connections until then, so there are as many rollouts as connections.
 */
export function rolloutsPerShard(spec: RunSpec, { replies_whole = spec.replies_whole }: RunHead): number {
  return replies_whole === true ? LIMITS.parallelFetches : LIMITS.rolloutsPerShard;
}

interface Occupation {
  taken: number;
  /** How many more rollouts it may get in all. */
  left: number;
}

export class Shards {
  readonly #shards = new Map<number, Occupation>();
  /** The shards that play so many rollouts, by that number. */
  readonly #playing: readonly Set<number>[];
  #last = 0;

  /** `widest`: the most rollouts that any shard plays at a time. */
  constructor(widest: number = LIMITS.rolloutsPerShard) {
    this.#playing = Array.from({ length: widest + 1 }, () => new Set<number>());
  }

  /** The shard of the next rollout. `begin` returns the number of a new one. `most`: rollouts in one shard at a time. */
  take(begin: () => number, most: number): number {
    const shard = this.#next(most) ?? this.#add(begin());
    this.#last = shard;
    this.#change(shard, 1);
    return shard;
  }

  /** A rollout of the shard has reported. */
  leave(shard: number | null): void {
    this.#last = 0;
    if (shard !== null) this.#change(shard, -1);
  }

  /** A rollout of the shard was given up: the shard may never answer, and gets no other rollout. */
  drop(shard: number | null): void {
    const occupation = shard === null ? undefined : this.#shards.get(shard);
    if (shard === null || occupation === undefined) return;
    this.#playing[occupation.taken]?.delete(shard);
    this.#shards.delete(shard);
    this.#last = 0;
  }

  /** Must be called when writes are rolled back: the occupation is then unknown. */
  forget(): void {
    this.#shards.clear();
    for (const shards of this.#playing) shards.clear();
  }

  /** The shard of the previous rollout if it has a free place, so that a group stays together; else the emptiest. */
  #next(most: number): number | undefined {
    if ((this.#shards.get(this.#last)?.taken ?? most) < most) return this.#last;
    const emptiest = this.#playing.slice(0, most).find((shards) => shards.size > 0);
    return emptiest?.values().next().value;
  }

  #add(shard: number): number {
    this.#shards.set(shard, { taken: 0, left: LIMITS.rolloutsPerShardInAll });
    this.#playing[0]?.add(shard);
    return shard;
  }

  #change(shard: number, by: 1 | -1): void {
    const occupation = this.#shards.get(shard);
    if (occupation === undefined) return;
    this.#playing[occupation.taken]?.delete(shard);
    occupation.taken += by;
    if (by === 1) occupation.left -= 1;
    if (occupation.left > 0) this.#playing[occupation.taken]?.add(shard);
    else this.#shards.delete(shard);
  }
}
