/** Builds a list of embeddings, OpenAI's object, from a reply that holds the vectors as JSON, one for each text. */
import type { ReplyParts } from "./completion-body.ts";

export function embeddingsBody(
  { content, usage }: ReplyParts,
  model: string,
  promptTokens: number,
): Record<string, unknown> {
  const vectors: unknown[] = JSON.parse(content ?? "[]");
  const prompt_tokens = usage?.prompt_tokens ?? promptTokens;
  return {
    object: "list",
    // Any order is allowed, because each entry has its index.
    data: vectors.map((embedding, index) => ({ object: "embedding", index, embedding })).reverse(),
    model,
    ...(usage !== null && { usage: { prompt_tokens, total_tokens: prompt_tokens } }),
  };
}
