/** Turns of a rollout as an engine samples them: hand-written token ids, and the engine's label of its weights. */

import type { ModelResponse, StoredTurn } from "../../../src/contract/trajectory.ts";
import { packTokens } from "../../../src/core/rollout/tokens.ts";

export interface Sampled {
  readonly prompt: readonly number[];
  readonly answer: readonly number[];
  readonly logprobs?: readonly number[] | null;
  readonly version?: string | null;
  /** The turn as whose suffix its ids are stored; absent: the turn before. */
  readonly after?: number | undefined;
  /** False: its agent excluded it from training. */
  readonly train?: boolean;
}

/** Turns as a rollout stores them. */
export function stored(turns: readonly Sampled[]): StoredTurn[] {
  return turns.map(({ prompt, answer, logprobs, version = "3", after, train = true }, index) => {
    const base = turns[after ?? index - 1];
    const response: ModelResponse = {
      id: null,
      model: null,
      message: { role: "assistant", content: "" },
      finish_reason: "stop",
      usage: {
        prompt_tokens: prompt.length,
        completion_tokens: answer.length,
        total_tokens: prompt.length + answer.length,
      },
      prompt_ids: prompt,
      completion_ids: answer,
      completion_logprobs: logprobs === undefined ? answer.map(() => -0.5) : logprobs,
      policy_version: version,
      latency_ms: 0,
    };
    const tokens = packTokens(base === undefined ? [] : [...base.prompt, ...base.answer], response);
    return {
      index,
      prompt: { ...(after !== undefined && { after }), keep: 0, append: [] },
      completion: response.message,
      finish_reason: "stop",
      usage: response.usage,
      tokens,
      is_truncated: false,
      calls: 1,
      latency_ms: 0,
      response_id: null,
      model: null,
      policy_version: version,
      answered_at: 0,
      state_after: null,
      ...(!train && { asked: { hash: "", lease: 1, sampling: {}, train } }),
    };
  });
}

export const rollout = (turns: readonly StoredTurn[]) => ({ turns, error: null, cancelled: null });
export const DISPATCHED = { dispatch_version: 3 };

export const FIRST: Sampled = { prompt: [10, 11, 12], answer: [20, 21], logprobs: [-0.5, -0.25] };
export const GOES_ON: Sampled = {
  prompt: [10, 11, 12, 20, 21, 30],
  answer: [22],
  logprobs: [-1],
  version: "4",
};
