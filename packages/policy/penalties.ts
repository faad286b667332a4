/** Penalties on tokens that were there before, as vLLM applies them: to the logits, before the temperature. */

export interface Penalties {
  /** Of tokens of the prompt and of the answer: a logit above 0 is divided by it, one below multiplied; 1 is off. */
  readonly repetition: number;
  /** Taken off the logit of each token of the answer so far, once; 0 is off. */
  readonly presence: number;
  /** And once for each time it stands there; 0 is off. */
  readonly frequency: number;
}

/** A copy; the logits themselves where no penalty is on. */
export function penalised(
  logits: Float32Array,
  { repetition, presence, frequency }: Penalties,
  prompt: readonly number[],
  answer: readonly number[],
): Float32Array {
  if (repetition === 1 && presence === 0 && frequency === 0) return logits;
  const changed = logits.slice();
  for (const id of new Set([...prompt, ...answer])) {
    const logit = changed[id] ?? 0;
    changed[id] = logit > 0 ? logit / repetition : logit * repetition;
  }
  for (const id of new Set(answer)) changed[id] = (changed[id] ?? 0) - presence;
  for (const id of answer) changed[id] = (changed[id] ?? 0) - frequency;
  return changed;
}
