/**
 * Reads a reply of POST /embeddings, and compares two of its vectors. A reply without exactly one vector per text is an
 * error of the library (retryable). Source: OpenAI's embeddings object;
 * https://developers.openai.com/api/docs/api-reference/embeddings.
 */
import * as z from "zod";
import { InvalidModelResponseError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Usage } from "../../contract/messages.ts";
import { listOf, Numbers } from "../schema/bounded-lists.ts";

export type Vector = readonly number[];

export interface Embeddings {
  /** One per text, in the order of the texts. */
  readonly vectors: readonly Vector[];
  readonly usage: Usage | null;
}

const Count = z.int().nonnegative();
/** Enough for every request: a cosine needs two texts. */
const MOST_TEXTS = 64;
const WireEmbeddings = z.object({
  data: listOf(z.object({ index: Count, embedding: Numbers }), MOST_TEXTS),
  usage: z.object({ prompt_tokens: Count.max(LIMITS.tokensPerCall) }).nullish(),
});

/** `texts`: the number of texts sent. Throws `InvalidModelResponseError`. */
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

/** From 0 to 1, with 0 for opposite directions; null if it is undefined: different lengths, or a zero vector. */
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
