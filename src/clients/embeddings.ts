/** The call of an embedding model: the conditions and the outcomes of a model call (`inference.ts`), with its own body. */

import type { Sampling } from "../contract/sampling.ts";
import { type Embeddings, readEmbeddings } from "../core/rubrics/embeddings.ts";
import { type CallOutcome, type Destination, postCall } from "./inference.ts";

export interface EmbeddingCall extends Destination {
  readonly model: string;
  readonly texts: readonly string[];
  /** Sent with it, such as `dimensions`; null for nothing. */
  readonly extra_body: Sampling["extra_body"];
}

export async function callEmbeddings(call: EmbeddingCall): Promise<CallOutcome<Embeddings>> {
  const { model, texts, extra_body } = call;
  // Engines differ in what they send unasked: numbers, or bytes in base64.
  const body = { model, input: texts, encoding_format: "float", ...extra_body };
  return await postCall(call, "/embeddings", body, (reply) => readEmbeddings(reply, texts.length));
}
