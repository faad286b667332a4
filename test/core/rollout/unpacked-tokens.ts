/** The token ids and logprobs of stored turns, as lists of numbers. */
import { continuedBy } from "../../../src/contract/trajectory.ts";
import { float32s, idsAfter, int32s } from "../../../src/core/rollout/tokens.ts";

/** The unpacked ids of every turn, in order: prompt ids, sampled ids, logprobs. */
export function unpackTokens(
  turns: Parameters<typeof idsAfter>[0],
): ({ prompt_ids: number[]; completion_ids: number[]; logprobs: number[] | null } | null)[] {
  return turns.map(({ tokens, prompt }, index) => {
    if (tokens === null) return null;
    const suffix = [...int32s(tokens.prompt_suffix_ids)];
    const logprobs = tokens.completion_logprobs;
    return {
      prompt_ids: tokens.forked ? suffix : [...idsAfter(turns, continuedBy(index, prompt)), ...suffix],
      completion_ids: [...int32s(tokens.completion_ids)],
      logprobs: logprobs === null ? null : [...float32s(logprobs)],
    };
  });
}
