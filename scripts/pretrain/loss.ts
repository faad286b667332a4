/** Weighted cross-entropy of the next token. */
import type { Batch } from "./batch.ts";

/** The loss; the logits are overwritten with its gradient. */
export function crossEntropy(logits: Float32Array, { targets }: Batch, vocabulary: number): number {
  let loss = 0;
  for (const [row, { id, weight }] of targets.entries()) {
    const scores = logits.subarray(row * vocabulary, (row + 1) * vocabulary);
    loss += weight === 0 ? zero(scores) : rowLoss(scores, id, weight);
  }
  return loss;
}

function zero(scores: Float32Array): number {
  scores.fill(0);
  return 0;
}

function rowLoss(scores: Float32Array, target: number, weight: number): number {
  let peak = Number.NEGATIVE_INFINITY;
  for (const score of scores) if (score > peak) peak = score;
  let total = 0;
  for (const score of scores) total += Math.exp(score - peak);
  const loss = Math.log(total) - ((scores[target] ?? 0) - peak);
  for (let id = 0; id < scores.length; id += 1) {
    scores[id] = (weight * Math.exp((scores[id] ?? 0) - peak)) / total;
  }
  scores[target] = (scores[target] ?? 0) - weight;
  return weight * loss;
}
