/**
 * Keys and values of sequences in a fixed number of slots: running sequences, and ended ones that are kept for the next
 * request with the same first tokens.
 *
 * Invariants: a slot's numbers are valid for exactly `tokens`, in order, with the weights of its epoch. A sequence
 * takes over a whole slot or a copy of it, so it never writes into a slot that another sequence reads. Entries are
 * never shared between salts. The least recently used idle slot is taken first. Keys are stored transposed, one row per
 * dimension, so that the product of a query with all keys is one matrix product.
 */
import type { Arena } from "./gemm.ts";

export interface KvSlot {
  /** layers × width × context. */
  readonly keys: Float32Array;
  /** layers × context × width. */
  readonly values: Float32Array;
  /** The tokens that the slot holds so far. */
  readonly tokens: number[];
  salt: string | null;
  epoch: number;
}

/** The dimensions that a slot's size depends on. */
export interface KvShape {
  readonly layers: number;
  readonly width: number;
  readonly context: number;
}

/** The number of floats that `slots` slots need in an arena. */
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

  /** The share of the slots that running sequences use. */
  get usage(): number {
    return 1 - this.#idle.size / this.#slots.length;
  }

  /**
   * A slot that holds the longest known prefix of the prompt, but never its last token: that is computed for its
   * logits. Throws if every slot is in use; the caller runs fewer sequences than there are slots.
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

  /** The sequence has ended; its tokens stay available until the slot is needed. */
  release(slot: KvSlot): void {
    this.#idle.add(slot);
  }

  /** The weights changed: no earlier entry is reused, and running sequences keep theirs. */
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

/** Copies everything: keys are stored transposed, and one large copy is faster than many small ones. */
function copyTokens(from: KvSlot, to: KvSlot): void {
  to.keys.set(from.keys);
  to.values.set(from.values);
  to.tokens.length = 0;
  to.tokens.push(...from.tokens);
}
