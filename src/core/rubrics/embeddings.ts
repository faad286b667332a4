/**
 * A reply of POST /embeddings, and what two of its vectors say of their texts. A reply that is no list of as many
 * vectors as there were texts is an error of the library (retryable: another try may be answered properly). Source:
 * OpenAI's embeddings object; https://developers.openai.com/api/docs/api-reference/embeddings.
 */
import * as z from "zod";
import { InvalidModelResponseError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Usage } from "../../contract/messages.ts";
import { listOf, Numbers } from "../schema/bounded-lists.ts";

export type Vector = readonly number[];

export interface Embeddings {
  /** One for each text, in the order of the texts. */
  readonly vectors: readonly Vector[];
  readonly usage: Usage | null;
}

const Count = z.int().nonnegative();
/** Nobody asks for more at once: a cosine is of two. */
const MOST_TEXTS = 64;
const WireEmbeddings = z.object({
  data: listOf(z.object({ index: Count, embedding: Numbers }), MOST_TEXTS),
  usage: z.object({ prompt_tokens: Count.max(LIMITS.tokensPerCall) }).nullish(),
});

/** `texts`: how many were sent. Throws `InvalidModelResponseError`. */
export function readEmbeddings(body: unknown, texts: number): Embeddings {
  const parsed = WireEmbeddings.safeParse(body);
  if (!parsed.success) {
    throw new InvalidModelResponseError("the reply is not a list of embeddings");
  }
  const { data, usage } = parsed.data;
  const sorted = data.toSorted((a, b) => a.index - b.index);
  if (sorted.length !== texts || sorted.some(({ index }, at) => index !== at)) {
    throw new InvalidModelResponseError(`the reply does not have ${texts} embeddings, one per text`);
  }
  return {
    vectors: sorted.map(({ embedding }) => embedding),
    usage: usage ? inputOnly(usage.prompt_tokens) : null,
  };
}

function inputOnly(prompt_tokens: number): Usage {
  return { prompt_tokens, completion_tokens: 0, total_tokens: prompt_tokens };
}

/** From 0 to 1, opposite directions being 0; null where it is not defined: other lengths, or a vector without one. */
export function cosineOf(a: Vector, b: Vector): number | null {
  if (a.length !== b.length) return null;
  let [shared, ofA, ofB] = [0, 0, 0];
  for (const [at, x] of a.entries()) {
    const y = b[at] ?? 0;
    shared += x * y;
    ofA += x * x;
    ofB += y * y;
  }
  const cosine = shared / (Math.sqrt(ofA) * Math.sqrt(ofB));
  return Number.isFinite(cosine) ? Math.min(1, Math.max(0, cosine)) : null;
}
