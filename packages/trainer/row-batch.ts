/**
 * Lays out samples for the model: a fixed number of rows of a fixed length, because each shape is compiled once.
 *
 * Invariants: a place holds a token and, as its target, the next token of its sample, so a sample of n tokens takes n -
 * 1 places. Every target that is not trainable has weight 0: prompts, tool results, padding. Padding belongs to sample
 * 0; real samples count from 1 in each row.
 */

/** The batch cannot be trained on: it cannot be decoded (`decode`), or this trainer does not support it (`invalid`). */
export class BatchFault extends Error {
  override readonly name = "BatchFault";
  readonly reason: "decode" | "invalid";

  constructor(reason: "decode" | "invalid", message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** One sequence to train on: the sample's tokens with its credit from the batch. */
export interface TrainingSample {
  readonly ids: ArrayLike<number>;
  /** The share of each token in the loss: 1 if it was sampled and is trained on, else 0. The first token has none. */
  readonly mask: ArrayLike<number>;
  /** The logprob of each token when it was sampled, with the policy at its temperature. */
  readonly logprobs: ArrayLike<number>;
  readonly advantage: number;
  /** The batch's weight of each of its tokens in the loss (1); it does not change the divisor of the mean. */
  readonly weight?: number;
}

/** The number of trainable tokens, by which a token mean divides; if shares are not 0 or 1, their sum. */
export function trainableTokens(samples: readonly TrainingSample[]): number {
  let count = 0;
  for (const { mask } of samples) {
    for (let at = 1; at < mask.length; at += 1) count += mask[at] ?? 0;
  }
  return count;
}

export interface Shape {
  readonly rows: number;
  readonly length: number;
}

/** Enough for nearly every batch of short replies. */
export const FIRST_SHAPE: Shape = { rows: 16, length: 48 };
/** Each has about as many places: enough to use the processor well, few enough that other work can run in between. */
const SHAPES = [FIRST_SHAPE, { rows: 10, length: 80 }, { rows: 7, length: 112 }];

export interface RowBatch {
  readonly shape: Shape;
  readonly tokens: Int32Array<ArrayBuffer>;
  readonly positions: Int32Array<ArrayBuffer>;
  readonly samples: Int32Array<ArrayBuffer>;
  readonly targets: Int32Array<ArrayBuffer>;
  readonly logprobs: Float32Array<ArrayBuffer>;
  readonly advantages: Float32Array<ArrayBuffer>;
  /** The weight of each target in the loss; 0 if it is not trained on. */
  readonly weights: Float32Array<ArrayBuffer>;
}

/**
 * Lays samples out in as many batches as they need. `weight` is the weight of a token with a share of 1. Throws
 * BatchFault if a sample is longer than the model's context.
 */
export function layOut(samples: readonly TrainingSample[], weight: number): RowBatch[] {
  const places = samples.map(({ ids }) => ids.length - 1);
  const longest = Math.max(0, ...places);
  const shape = SHAPES.find(({ length }) => length >= longest);
  if (shape === undefined) {
    throw new BatchFault("invalid", `a sample of ${longest + 1} tokens is longer than the model's context`);
  }
  const rows = packRows(places, shape.length).map((indices) => indices.flatMap((index) => samples[index] ?? []));
  const batches: RowBatch[] = [];
  for (let first = 0; first < rows.length; first += shape.rows) {
    const batch = emptyBatch(shape);
    for (const [at, row] of rows.slice(first, first + shape.rows).entries()) fillRow(batch, at, row, weight);
    batches.push(batch);
  }
  return batches;
}

/**
 * Packs samples of different lengths into rows of one length with little padding: the longest first, each into the
 * first row with enough space. Returns the indices of the samples of each row; the same lengths give the same rows.
 * Throws RangeError if a sample is longer than a row.
 */
export function packRows(lengths: readonly number[], capacity: number): number[][] {
  const longestFirst = lengths.map((length, index) => ({ length, index }));
  longestFirst.sort((one, other) => other.length - one.length || one.index - other.index);
  const rows: { free: number; readonly samples: number[] }[] = [];
  for (const { length, index } of longestFirst) {
    if (length > capacity) throw new RangeError(`a sample of ${length} tokens, rows of ${capacity}`);
    let row = rows.find(({ free }) => free >= length);
    if (row === undefined) {
      row = { free: capacity, samples: [] };
      rows.push(row);
    }
    row.free -= length;
    row.samples.push(index);
  }
  return rows.map(({ samples }) => samples);
}

export function emptyBatch(shape: Shape): RowBatch {
  const places = shape.rows * shape.length;
  return {
    shape,
    tokens: new Int32Array(places),
    positions: new Int32Array(places),
    samples: new Int32Array(places),
    targets: new Int32Array(places),
    logprobs: new Float32Array(places),
    advantages: new Float32Array(places),
    weights: new Float32Array(places),
  };
}

function fillRow(batch: RowBatch, row: number, samples: readonly TrainingSample[], weight: number): void {
  let place = row * batch.shape.length;
  for (const [index, { ids, mask, logprobs, advantage, weight: own = 1 }] of samples.entries()) {
    for (let at = 0; at + 1 < ids.length; at += 1, place += 1) {
      batch.tokens[place] = ids[at] ?? 0;
      batch.positions[place] = at;
      batch.samples[place] = index + 1;
      batch.targets[place] = ids[at + 1] ?? 0;
      const share = mask[at + 1] ?? 0;
      if (share === 0) continue;
      batch.logprobs[place] = logprobs[at + 1] ?? 0;
      batch.advantages[place] = advantage;
      batch.weights[place] = share * own * weight;
    }
  }
}
