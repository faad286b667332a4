/**
 * Filters of single rollouts of a training run: each looks at the sampled tokens of a rollout's rows, and either only
 * counts what it finds or also keeps the rollout out of training (`enforce`).
 *
 * Invariants. A filter depends only on the rows, so a repeat finds the same. It changes no reward and no advantage: a
 * rollout that is left out still counts in its group's mean. Rows are looked at one by one, since branches of a rollout
 * do not continue each other; tokens with mask 0 are passed over. As prime-rl's filters before 61f2448
 * (orchestrator/filters.py).
 */
import type { SampleFilter } from "../../contract/training-request.ts";
import type { SampleRow } from "./sample-row.ts";

type Tokens = Pick<SampleRow, "token_ids" | "mask" | "logprobs">;

export interface Filtered {
  /** The filters that found something, in their order. */
  readonly flagged: readonly SampleFilter["kind"][];
  /** The first of them that is enforced: the rollout is not trained on. Null: none is. */
  readonly left_out_by: SampleFilter["kind"] | null;
}

/** What the filters find in the rows of one rollout. */
export function applyFilters(filters: readonly SampleFilter[], rows: readonly Tokens[]): Filtered {
  const found = filters.filter((filter) => rows.some((row) => finds(filter, row)));
  return {
    flagged: found.map(({ kind }) => kind),
    left_out_by: found.find(({ enforce }) => enforce)?.kind ?? null,
  };
}

function finds(filter: SampleFilter, row: Tokens): boolean {
  return filter.kind === "gibberish" ? hasGibberish(filter, row) : hasRepetition(filter, row);
}

/** A rare token that was sampled although it was less likely than by chance (https://arxiv.org/abs/2510.02387, 5.2). */
function hasGibberish(
  { token_id_threshold, vocab_size, logprob_offset }: Extract<SampleFilter, { kind: "gibberish" }>,
  { token_ids, mask, logprobs }: Tokens,
): boolean {
  const least = -Math.log(vocab_size) - logprob_offset;
  return mask.some((bit, at) => bit === 1 && (token_ids[at] ?? 0) > token_id_threshold && (logprobs[at] ?? 0) < least);
}

/** A long run of tokens that were nearly certain (https://arxiv.org/abs/2506.13585, 3.2). */
function hasRepetition(
  { window, prob_threshold }: Extract<SampleFilter, { kind: "repetition" }>,
  { mask, logprobs }: Tokens,
): boolean {
  const above = Math.log(prob_threshold);
  let streak = 0;
  return mask.some((bit, at) => {
    if (bit === 0) return false;
    streak = (logprobs[at] ?? 0) > above ? streak + 1 : 0;
    return streak >= window;
  });
}
