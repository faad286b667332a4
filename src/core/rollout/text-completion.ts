/**
 * A choice of a text completion (OpenAI's older API), or of one of its chunks, in the form of a chat completion's chunk.
 * Sources: OpenAI's completion object; vLLM's protocol for the ids.
 */
import { isRecord } from "../../contract/json.ts";

/** Any other choice is returned unchanged. */
export function chunkOfText(choice: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { text, logprobs, ...rest } = choice;
  if (typeof text !== "string" || isRecord(choice["message"]) || isRecord(choice["delta"])) return choice;
  const columns = isRecord(logprobs) ? logprobs["token_logprobs"] : null;
  const content = Array.isArray(columns) ? columns.map((logprob: unknown) => ({ logprob })) : null;
  return {
    ...rest,
    delta: { role: "assistant", content: text },
    ...(content !== null && { logprobs: { content } }),
  };
}
