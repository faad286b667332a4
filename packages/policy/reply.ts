/** Shared parts of all replies: the handler types, and the fields that chat and plain completions have in common. */
import { randomUUID } from "node:crypto";
import type { Choice } from "./choice.ts";
import type { Engine } from "./engine.ts";
import { RequestError, type ServingOptions } from "./request-schemas.ts";
import { tokenText } from "./tokenizer.ts";

/** The context of a handler. */
export interface PolicyContext {
  readonly engine: Engine;
  /** The name of the only model. */
  readonly model: string;
  readonly serving: ServingOptions;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

export interface PolicyRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Buffer;
  /** The parsed JSON body; throws a `RequestError` if it is not JSON. */
  readonly json: () => unknown;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
}

/** Sends one event of a stream. */
export type Send = (event: object) => void;

export type PolicyReply =
  | { readonly kind: "json"; readonly body: object }
  | { readonly kind: "text"; readonly type: string; readonly text: string }
  | { readonly kind: "events"; readonly run: (send: Send) => Promise<void> };

export type Handler = (context: PolicyContext, request: PolicyRequest) => PolicyReply | Promise<PolicyReply>;

/** The identity of one completion, the same in all its chunks. `created` is in seconds since the epoch. */
export function headingOf(
  context: PolicyContext,
  prefix: "chatcmpl" | "cmpl",
  object: string,
  requestId: string | null | undefined,
) {
  const id = `${prefix}-${requestId ?? hexId()}`;
  return { id, object, created: Math.floor(context.now() / 1000), model: context.model };
}

/** 32 hex digits. */
export function hexId(): string {
  return randomUUID().replaceAll("-", "");
}

/** Only one model is served; as in vLLM, a missing name means that one. */
export function requireModel(context: PolicyContext, model: string | null | undefined): void {
  if (model === null || model === undefined || model === "" || model === context.model) return;
  throw new RequestError(404, `The model \`${model}\` does not exist.`, "model");
}

/** A prompt is counted once, however many choices were sampled from it. */
export function usageOf(choices: readonly Choice[]): object {
  const prompts = [...new Map(choices.map((choice) => [choice.prompt, choice])).values()];
  const prompt_tokens = sum(prompts.map(({ prompt }) => prompt.length));
  const completion_tokens = sum(choices.map(({ tokens }) => tokens.length));
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details: { cached_tokens: sum(prompts.map((choice) => choice.cachedTokens)) },
  };
}

/** A field of Rollcall, not of vLLM: the weights that sampled the first and the last token. */
export function versionsOf(choices: readonly Choice[]): object {
  return {
    weight_version: choices.at(-1)?.weightVersions.last,
    first_weight_version: choices[0]?.weightVersions.first,
  };
}

/** The name of a token in logprobs. */
export function tokenLabel(id: number, asId: boolean | null | undefined): string {
  return asId ? `token_id:${id}` : tokenText(id);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
