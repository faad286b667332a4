/**
 * Reference logprobs of a row: those that another model, such as a teacher, gives to the row's own tokens. They are
 * requested like judgements, so leases, retries, costs and kills are those of judges.
 *
 * Invariants. A question is identified by the row's ids: equal rows of a group are asked once. A row has the logprobs of
 * all its tokens, or none: a rollout with a row without them gives no rows. Source: vLLM's POST /v1/completions with
 * `prompt_logprobs`; index 0 is null, because the first token has nothing before it.
 */
import { InvalidModelResponseError } from "../../contract/errors.ts";
import { isRecord } from "../../contract/json.ts";
import type { Usage } from "../../contract/messages.ts";
import { REFERENCE_JUDGE } from "../../contract/training-request.ts";
import type { JudgeAsk } from "../rubrics/judges.ts";
import type { SampleRow } from "./sample-row.ts";
import { logprobFault } from "./trainable.ts";

const KEY = "reference:";

/** The question for a row. `hash`: of bytes, in hex. */
export function referenceAsk(
  { rollout_id, token_ids }: Pick<SampleRow, "rollout_id" | "token_ids">,
  hash: (bytes: Uint8Array<ArrayBuffer>) => string,
): JudgeAsk {
  const { buffer, byteOffset, byteLength } = token_ids;
  const key = `${KEY}${hash(new Uint8Array(buffer, byteOffset, byteLength))}`;
  const nothing = { messages: [], menu: { kind: "text" }, sampling: {}, pass: 0, left_out: 0, seed: null } as const;
  return { key, judge: REFERENCE_JUDGE, rollout_id, token_ids, ...nothing };
}

export function isReferenceKey(key: string): boolean {
  return key.startsWith(KEY);
}

/** The name of the stored logprobs of a question. */
export function referenceName(key: string): string {
  return key.slice(KEY.length);
}

export interface PromptLogprobs {
  /** One per token; 0 for the first. */
  readonly logprobs: readonly number[];
  readonly usage: Usage | null;
}

/** Reads a reply of POST /completions with `prompt_logprobs`. Throws `InvalidModelResponseError`. */
export function readPromptLogprobs(body: unknown, ids: ArrayLike<number>, usage: Usage | null): PromptLogprobs {
  const choices = isRecord(body) ? body["choices"] : undefined;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const entries = isRecord(choice) ? choice["prompt_logprobs"] : undefined;
  if (!Array.isArray(entries)) {
    throw new InvalidModelResponseError(
      "the reply has no prompt_logprobs: the reference's server must return them, as vLLM does",
    );
  }
  if (entries.length !== ids.length) {
    throw new InvalidModelResponseError(`the reply has ${entries.length} prompt_logprobs for ${ids.length} tokens`);
  }
  const logprobs = Array.from(ids, (id, at) => (at === 0 ? 0 : logprobOf(entries[at], id, at)));
  const fault = logprobFault(Float32Array.from(logprobs));
  if (fault !== null) throw new InvalidModelResponseError(`prompt_logprobs: ${fault}`);
  return { logprobs, usage };
}

/** The entry of the token itself: the likeliest other tokens may be beside it. */
function logprobOf(entry: unknown, id: number, at: number): number {
  const own = isRecord(entry) ? entry[String(id)] : undefined;
  const logprob = isRecord(own) ? own["logprob"] : undefined;
  if (typeof logprob === "number") return logprob;
  throw new InvalidModelResponseError(`prompt_logprobs[${at}] has no logprob of the token ${id}`);
}

/** The mean over all tokens but the first, which has none. */
export function meanLogprob(logprobs: readonly number[]): number {
  return logprobs.reduce((sum, logprob) => sum + logprob, 0) / Math.max(1, logprobs.length - 1);
}

/** The row with its reference logprobs; the KL to the reference counts for each trained token with this weight. */
export function withReference(row: SampleRow, logprobs: Float32Array<ArrayBuffer>, klWeight: number): SampleRow {
  const weights = klWeight > 0 ? { ref_kl_weights: Float32Array.from(row.mask, (bit) => bit * klWeight) } : {};
  return { ...row, ref_logprobs: logprobs, ...weights };
}
