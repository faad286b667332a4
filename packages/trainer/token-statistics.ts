/**
 * What a step's tokens say about its health.
 *
 * `ratio` is how much likelier a token is to the trainer than it was to the engine: 1 on samples of the very weights that
 * train. `kl` is the mean of ratio - ln(ratio) - 1, never negative, 0 for those.
 */
import type { TokenFacts } from "./gradient.ts";
import type { RowBatch } from "./row-batch.ts";

export class TokenStatistics {
  #tokens = 0;
  #ratios = 0;
  #kl = 0;
  #entropy = 0;
  #cut = 0;
  #cutLow = 0;
  #cutHigh = 0;
  #worstRatio = 0;

  add(batches: readonly RowBatch[], facts: readonly TokenFacts[]): void {
    for (const [index, batch] of batches.entries()) {
      const fact = facts[index];
      if (fact === undefined) throw new RangeError(`batch ${index} has no facts`);
      for (let place = 0; place < batch.weights.length; place += 1) {
        if ((batch.weights[place] ?? 0) > 0) this.#addToken(batch, fact, place);
      }
    }
  }

  #addToken(batch: RowBatch, facts: TokenFacts, place: number): void {
    const change = (facts.logprobs[place] ?? 0) - (batch.logprobs[place] ?? 0);
    const ratio = Math.exp(change);
    this.#tokens += 1;
    this.#ratios += ratio;
    this.#kl += Math.expm1(change) - change;
    this.#entropy += facts.entropies[place] ?? 0;
    this.#worstRatio = Math.max(this.#worstRatio, Math.abs(ratio - 1));
    if (facts.kept[place] !== 0) return;
    this.#cut += 1;
    if (ratio < 1) this.#cutLow += 1;
    else this.#cutHigh += 1;
  }

  /** Against the engine that sampled. NaN where there were no tokens. */
  get drift() {
    const kl = this.#kl / this.#tokens;
    return {
      ratio: this.#ratios / this.#tokens,
      ratio_max_abs_error: this.#worstRatio,
      kl,
      mismatch_kl: kl,
    };
  }

  /** Of the policy, and of what the loss left of its gradient. NaN where there were no tokens. */
  get health() {
    return {
      entropy: this.#entropy / this.#tokens,
      is_masked: this.#cut / this.#tokens,
      is_masked_low: this.#cutLow / this.#tokens,
      is_masked_high: this.#cutHigh / this.#tokens,
    };
  }
}
