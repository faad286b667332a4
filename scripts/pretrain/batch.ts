/** Sequences side by side without padding, and what the loss asks of each token. */

/** A conversation as the policy reads it, with the weight of each token in the loss; the first is never predicted. */
export interface Example {
  readonly ids: readonly number[];
  readonly weights: readonly number[];
}

export interface Segment {
  /** Row of the first token. */
  readonly first: number;
  readonly length: number;
}

export interface Batch {
  readonly ids: readonly number[];
  readonly segments: readonly Segment[];
  /** Per row, the token that follows and its weight; the weights of a batch sum to 1, and a last row has none. */
  readonly targets: readonly { readonly id: number; readonly weight: number }[];
}

export function packExamples(examples: readonly Example[]): Batch {
  const segments: Segment[] = [];
  let first = 0;
  for (const { ids } of examples) {
    segments.push({ first, length: ids.length });
    first += ids.length;
  }
  const targets = examples.flatMap(({ ids, weights }) =>
    ids.map((_, at) => ({ id: ids[at + 1] ?? 0, weight: weights[at + 1] ?? 0 })),
  );
  const total = targets.reduce((sum, { weight }) => sum + weight, 0);
  return {
    ids: examples.flatMap(({ ids }) => ids),
    segments,
    targets: targets.map(({ id, weight }) => ({ id, weight: weight / total })),
  };
}
