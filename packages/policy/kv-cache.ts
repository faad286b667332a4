/**
 * Keys and values of sequences, in a fixed number of slots: those that run, and those that ended, kept for the next
 * request that begins with the same tokens.
 *
 * Invariants. A slot's numbers are valid for exactly `tokens`, in order, under the weights of its epoch; what another
 * sequence takes over is copied or the whole slot, so a sequence never writes into what another reads. Nothing crosses
 * a salt. An idle slot is taken over least recently used first. Keys are stored transposed, one row per dimension:
 * a query times all keys is then one matrix product.
 */
import type { Arena } from "./gemm.ts";

export interface KvSlot {
  /** layers × width × context. */
  readonly keys: Float32Array;
  /** layers × context × width. */
  readonly values: Float32Array;
  /** What the slot holds so far. */
  readonly tokens: number[];
  salt: string | null;
  epoch: number;
}

/** What a slot's size depends on. */
export interface KvShape {
  readonly layers: number;
  readonly width: number;
  readonly context: number;
}

/** Floats that `slots` slots take in an arena. */
export function kvCapacity(shape: KvShape, slots: number): number {
  return slots * 2 * floatsPerSlot(shape);
}

function floatsPerSlot({ layers, width, context }: KvShape): number {
  return layers * width * context;
}

export class KvCache {
  readonly #slots: readonly KvSlot[];
  /** In the order of their release: the first is the least recently used. */
  readonly #idle: Set<KvSlot>;
  #epoch = 0;

  constructor(shape: KvShape, arena: Arena, slots: number) {
    const floats = floatsPerSlot(shape);
    this.#slots = Array.from({ length: slots }, () => ({
      keys: arena.vector(floats),
      values: arena.vector(floats),
      tokens: [],
      salt: null,
      epoch: 0,
    }));
    this.#idle = new Set(this.#slots);
  }

  /** Share of the slots that running sequences hold. */
  get usage(): number {
    return 1 - this.#idle.size / this.#slots.length;
  }

  /**
   * A slot that already holds as much of the prompt as any slot does, but never its last token: that one is computed,
   * for its logits. Throws when every slot is in use: the caller runs fewer sequences than there are slots.
   */
  acquire(prompt: readonly number[], salt: string | null): KvSlot {
    const { slot: source, shared } = this.#longestPrefix(prompt, salt);
    const [oldest] = this.#idle;
    if (oldest === undefined) throw new Error("every slot of the cache is in use");
    const extended = source !== null && this.#idle.has(source) && shared === source.tokens.length;
    const slot = extended ? source : oldest;
    this.#idle.delete(slot);
    if (source !== null && slot !== source) copyTokens(source, slot);
    slot.tokens.length = shared;
    slot.salt = salt;
    slot.epoch = this.#epoch;
    return slot;
  }

  /** The sequence has ended; its tokens stay for others until the slot is needed. */
  release(slot: KvSlot): void {
    this.#idle.add(slot);
  }

  /** The weights changed: nothing held so far is handed out again, and running sequences keep what they have. */
  invalidate(): void {
    this.#epoch += 1;
  }

  #longestPrefix(prompt: readonly number[], salt: string | null): Prefix {
    let best: Prefix = { slot: null, shared: 0 };
    for (const slot of this.#slots) {
      if (slot.epoch !== this.#epoch || slot.salt !== salt) continue;
      const shared = sharedTokens(prompt, slot.tokens);
      if (shared > best.shared) best = { slot, shared };
    }
    return best;
  }
}

interface Prefix {
  readonly slot: KvSlot | null;
  readonly shared: number;
}

function sharedTokens(prompt: readonly number[], held: readonly number[]): number {
  const limit = Math.min(prompt.length - 1, held.length);
  let shared = 0;
  while (shared < limit && prompt[shared] === held[shared]) shared += 1;
  return shared;
}

/** All of it: keys lie transposed, and one copy of everything is quicker than many of what is needed. */
function copyTokens(from: KvSlot, to: KvSlot): void {
  to.keys.set(from.keys);
  to.values.set(from.values);
  to.tokens.length = 0;
  to.tokens.push(...from.tokens);
}
