/**
 * Samples one token from one row of logits.
 *
 * Invariants: log probabilities are those of the distribution before truncation: log_softmax(logits / temperature).
 * Therefore top-p, top-k and min-p do not change them, and a trainer can compute the same values. Greedy sampling
 * (temperature 0) reports log_softmax(logits). Penalties and a grammar change the logits first; raw log probabilities
 * are always log_softmax of the original logits. The same logits, options and random number give the same token.
 */

export interface Penalties {
  /**
   * For tokens of the prompt and of the answer: a logit above 0 is divided by it, one below 0 is multiplied; 1 is off.
   */
  readonly repetition: number;
  /** Subtracted once from the logit of each token that the answer contains; 0 is off. */
  readonly presence: number;
  /** Subtracted once for each time the answer contains the token; 0 is off. */
  readonly frequency: number;
}

export interface SamplingOptions {
  /** 0 is greedy. */
  readonly temperature: number;
  /** The smallest set of the likeliest tokens with this share of the probability; 1 is off. */
  readonly topP: number;
  /** The k likeliest tokens; -1 or 0 is off. */
  readonly topK: number;
  /** Tokens with at least this share of the likeliest token's probability; 0 is off. */
  readonly minP: number;
  /** The number of likeliest tokens to report with the sampled one. */
  readonly topLogprobs: number;
}

export interface TokenLogprob {
  readonly id: number;
  readonly logprob: number;
}

export interface SampledToken extends TokenLogprob {
  /** The `topLogprobs` likeliest tokens. */
  readonly top: readonly TokenLogprob[];
}

/** The logprob of a given token, with its rank (1: the likeliest), and the likeliest tokens with theirs. */
export interface PromptLogprob {
  readonly own: TokenLogprob & { readonly rank: number };
  readonly top: readonly TokenLogprob[];
}

/** `top`: how many of the likeliest tokens to report. */
export function rankedLogprob(logits: Float32Array, id: number, top: number): PromptLogprob {
  const most = logits.reduce((max, logit) => Math.max(max, logit), Number.NEGATIVE_INFINITY);
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - most), 0);
  const logprobOf = (token: number) => (logits[token] ?? Number.NEGATIVE_INFINITY) - most - Math.log(total);
  const order = Array.from(logits.keys()).sort(
    (one, other) => (logits[other] ?? 0) - (logits[one] ?? 0) || one - other,
  );
  return {
    own: { id, logprob: logprobOf(id), rank: order.indexOf(id) + 1 },
    top: order.slice(0, top).map((token) => ({ id: token, logprob: logprobOf(token) })),
  };
}

/** Constraints of one token, besides the request's options. */
interface Constraints {
  /** Never drawn; log probabilities ignore this. */
  readonly forbidden?: readonly number[];
  /** The only tokens that may be drawn, which log probabilities take into account; null for any. */
  readonly allowed?: readonly number[] | null;
  /** The logits for the log probabilities; by default those that are drawn from. */
  readonly raw?: Float32Array;
}

/** `random` returns numbers in [0, 1). */
export function sampleToken(
  all: Float32Array,
  options: SamplingOptions,
  random: () => number,
  { forbidden = [], allowed = null, raw }: Constraints = {},
): SampledToken {
  const logits = allowed === null ? all : keepOnly(all, allowed);
  const greedy = options.temperature === 0;
  const temperature = greedy ? 1 : options.temperature;
  const distribution = softmax(logits, temperature);
  const { weights } = forbidden.length === 0 ? distribution : softmax(leaveOut(logits, forbidden), temperature);
  const id = greedy ? argmax(weights) : draw(truncate(weights, options), random());
  const reported = raw === undefined ? distribution : softmax(raw, 1);
  const withLogprob = (one: number) => ({ id: one, logprob: reported.logprob(one) });
  return { ...withLogprob(id), top: likeliest(reported.weights, options.topLogprobs).map(withLogprob) };
}

function keepOnly(logits: Float32Array, ids: readonly number[]): Float32Array {
  const kept = new Float32Array(logits.length).fill(Number.NEGATIVE_INFINITY);
  for (const id of ids) kept[id] = logits[id] ?? 0;
  return kept;
}

/**
 * The weights are computed again, not set to 0: next to a forbidden peak, a low temperature would round all others to
 * 0.
 */
function leaveOut(logits: Float32Array, forbidden: readonly number[]): Float32Array {
  const kept = logits.slice();
  for (const id of forbidden) kept[id] = Number.NEGATIVE_INFINITY;
  return kept;
}

interface Distribution {
  /** Probabilities times a common factor; the largest is 1. */
  readonly weights: Float64Array;
  readonly logprob: (id: number) => number;
}

function softmax(logits: Float32Array, temperature: number): Distribution {
  let peak = Number.NEGATIVE_INFINITY;
  for (const logit of logits) if (logit > peak) peak = logit;
  const weights = new Float64Array(logits.length);
  let total = 0;
  for (let id = 0; id < logits.length; id += 1) {
    const weight = Math.exp(((logits[id] ?? 0) - peak) / temperature);
    weights[id] = weight;
    total += weight;
  }
  const logTotal = Math.log(total);
  return { weights, logprob: (id) => ((logits[id] ?? 0) - peak) / temperature - logTotal };
}

/** Applies the filters that are on: the k likeliest, then min-p, then top-p of the rest. */
function truncate(weights: Float64Array, { topK, topP, minP }: SamplingOptions): Float64Array {
  if (topK < 1 && topP >= 1 && minP <= 0) return weights;
  const ranked = likeliest(weights, topK < 1 ? weights.length : topK);
  const floor = minP * (weights[ranked[0] ?? 0] ?? 0);
  const candidates = ranked.filter((id) => (weights[id] ?? 0) >= floor);
  const kept = new Float64Array(weights.length);
  let missing = topP * candidates.reduce((sum, id) => sum + (weights[id] ?? 0), 0);
  for (const id of candidates) {
    const weight = weights[id] ?? 0;
    kept[id] = weight;
    missing -= weight;
    if (missing <= 0) break;
  }
  return kept;
}

/** The first id at which the running sum of weights exceeds `share` of their total. */
function draw(weights: Float64Array, share: number): number {
  let left = 0;
  for (const weight of weights) left += weight;
  left *= share;
  let last = 0;
  for (let id = 0; id < weights.length; id += 1) {
    const weight = weights[id] ?? 0;
    if (weight === 0) continue;
    last = id;
    left -= weight;
    if (left < 0) break;
  }
  return last;
}

/** The lowest id with the largest weight. */
function argmax(weights: Float64Array): number {
  let best = 0;
  for (let id = 1; id < weights.length; id += 1) {
    if ((weights[id] ?? 0) > (weights[best] ?? 0)) best = id;
  }
  return best;
}

/** The ids of the `count` largest weights, in descending order; for equal weights the lower id comes first. */
function likeliest(weights: Float64Array, count: number): number[] {
  if (count < 1) return [];
  const ids = Array.from(weights.keys());
  return ids.sort((one, other) => (weights[other] ?? 0) - (weights[one] ?? 0)).slice(0, count);
}

/**
 * Penalises earlier tokens as vLLM does: in the logits, before the temperature. Returns a copy, or the logits
 * themselves if no penalty is on.
 */
export function applyPenalties(
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
