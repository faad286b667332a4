/**
 * vLLM's reply to POST /v1/completions with `prompt_logprobs`, for a prompt of token ids. No model computes it: the logprob
 * of a token depends only on its id (`promptLogprobOf`), and another token is always the likeliest.
 */
export function promptLogprobOf(id: number): number {
  return -((id % 5) + 1) / 4;
}

/** Null if the body does not ask for it. */
export function promptLogprobsBody(
  body: Readonly<Record<string, unknown>>,
  serial: number,
): Record<string, unknown> | null {
  const { prompt, model, prompt_logprobs: asked, stream } = body;
  if (!Array.isArray(prompt) || typeof asked !== "number" || stream === true) return null;
  const ids = prompt.map(Number);
  const entryOf = (id: number) => ({
    ...(asked > 0 && { [id + 1]: { logprob: -0.125, rank: 1, decoded_token: `<${id + 1}>` } }),
    [id]: { logprob: promptLogprobOf(id), rank: 2, decoded_token: `<${id}>` },
  });
  const choice = {
    ...{ index: 0, text: "x", logprobs: null, finish_reason: "length", stop_reason: null },
    prompt_logprobs: ids.map((id, at) => (at === 0 ? null : entryOf(id))),
  };
  const usage = { prompt_tokens: ids.length, completion_tokens: 1, total_tokens: ids.length + 1 };
  return { id: `cmpl-${serial}`, object: "text_completion", created: 0, model, choices: [choice], usage };
}
