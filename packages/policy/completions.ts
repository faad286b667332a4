/**
 * POST /v1/completions: text after text, or token ids after token ids.
 *
 * Invariants. A prompt given as ids is taken as it stands, specials included; a prompt given as text never holds a
 * special. Several prompts and `n` make prompts × n choices, numbered prompt by prompt. The prompt's ids stand in the
 * choice here, as in vLLM.
 */
import { type Choice, type Delta, sampleChoices } from "./choice.ts";
import type { Engine } from "./engine.ts";
import {
  type Handler,
  type Heading,
  headingOf,
  requireModel,
  type Send,
  tokenLabel,
  usageOf,
  versionsOf,
} from "./reply.ts";
import { CompletionRequest, parseSampled, RequestError } from "./request-schemas.ts";
import type { SampledToken } from "./sampler.ts";
import { completionPlan, roomFor, type SamplingPlan } from "./sampling.ts";
import { encodeText } from "./tokenizer.ts";

interface CompletionStream {
  readonly engine: Engine;
  readonly heading: Heading;
  readonly request: CompletionRequest;
  readonly plan: SamplingPlan;
  readonly prompts: readonly (readonly number[])[];
  readonly signal: AbortSignal;
}

type Prompts = readonly (readonly number[])[];

export const completions: Handler = async (context, { json, signal }) => {
  const { engine } = context;
  const request = parseSampled(CompletionRequest, json());
  requireModel(context, request.model);
  const plan = completionPlan(request, context.serving);
  const prompts = promptsOf(request.prompt, engine.vocabularySize);
  // Checked before a stream begins: what is wrong must be its status.
  for (const prompt of prompts) roomFor(plan, prompt.length, engine.contextLength);
  const heading = headingOf(context, "cmpl", "text_completion", request.request_id);
  if (request.stream) {
    const stream = { engine, heading, request, plan, prompts, signal };
    return { kind: "events", run: (send) => streamCompletions(stream, send) };
  }
  const choices = await sampleChoices(engine, { prompts, plan, signal });
  const body = {
    ...heading,
    choices: choices.map((choice) => wireChoice(choice, request)),
    usage: usageOf(choices),
    ...versionsOf(choices),
  };
  return { kind: "json", body };
};

function promptsOf(prompt: CompletionRequest["prompt"], vocabulary: number): Prompts {
  const prompts = typeof prompt === "string" ? [encodeText(prompt)] : listOf(prompt);
  for (const ids of prompts) {
    if (ids.length === 0) throw new RequestError(400, "prompt: it is empty", "prompt");
    const wrong = ids.find((id) => id >= vocabulary);
    if (wrong === undefined) continue;
    const message = `prompt: token id ${wrong} is out of the vocabulary of ${vocabulary}`;
    throw new RequestError(400, message, "prompt");
  }
  return prompts;
}

function listOf(list: readonly (string | number | readonly number[])[]): Prompts {
  const ids = list.filter((part) => typeof part === "number");
  if (ids.length > 0) return [ids];
  return list
    .filter((part) => typeof part !== "number")
    .map((part) => (typeof part === "string" ? encodeText(part) : part));
}

function wireChoice(choice: Choice, request: CompletionRequest): object {
  return {
    index: choice.index,
    text: choice.text,
    ...(request.return_token_ids && {
      token_ids: choice.tokens.map(({ id }) => id),
      prompt_token_ids: choice.prompt,
    }),
    logprobs: completionLogprobs(choice.tokens, request, 0),
    finish_reason: choice.finishReason,
    stop_reason: choice.stopReason,
    prompt_logprobs: null,
  };
}

/**
 * A plain completion as it comes: a chunk per token, one per choice that says how it ended, and the usage where it was
 * asked for. The ids of a choice's prompt stand in its first chunk only.
 */
export async function streamCompletions(stream: CompletionStream, send: Send): Promise<void> {
  const { engine, heading, request, plan, prompts, signal } = stream;
  const offsets = new Map<number, number>();
  const onDelta = (delta: Delta) => {
    const { index, text, tokens } = delta;
    const before = offsets.get(index);
    const labels = tokens.map(({ id }) => tokenLabel(id, request.return_tokens_as_token_ids));
    offsets.set(index, (before ?? 0) + labels.join("").length);
    const logprobs = completionLogprobs(tokens, request, before ?? 0);
    const prompt = before === undefined ? prompts[Math.floor(index / plan.choices)] : undefined;
    const ids = request.return_token_ids ? idsOf(delta, prompt) : {};
    send({ ...heading, choices: [wireChunk(index, text, { logprobs, ...ids })] });
  };
  const choices = await sampleChoices(engine, { prompts, plan, signal, onDelta });
  for (const { index, finishReason, stopReason } of choices) {
    const ended = { finish_reason: finishReason, stop_reason: stopReason };
    send({ ...heading, choices: [wireChunk(index, "", ended)], ...versionsOf(choices) });
  }
  if (request.stream_options?.include_usage) {
    send({ ...heading, choices: [], usage: usageOf(choices), ...versionsOf(choices) });
  }
}

function idsOf({ tokens }: Delta, prompt: readonly number[] | undefined): object {
  const token_ids = tokens.map(({ id }) => id);
  return prompt === undefined ? { token_ids } : { token_ids, prompt_token_ids: prompt };
}

function wireChunk(index: number, text: string, more: object): object {
  return { index, text, logprobs: null, finish_reason: null, stop_reason: null, ...more };
}

/** The logprobs of a plain completion: OpenAI's older shape, one list per column. */

/** `offset`: characters of the choice's tokens before these. Null where the request asked for no logprobs. */
export function completionLogprobs(
  tokens: readonly SampledToken[],
  request: CompletionRequest,
  offset: number,
): object | null {
  if (request.logprobs === undefined || request.logprobs === null) return null;
  const label = (id: number) => tokenLabel(id, request.return_tokens_as_token_ids);
  let end = offset;
  const text_offset = tokens.map(({ id }) => {
    const start = end;
    end += label(id).length;
    return start;
  });
  return {
    tokens: tokens.map(({ id }) => label(id)),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    // As in vLLM the sampled token stands among its alternatives.
    top_logprobs: tokens.map((token) =>
      Object.fromEntries([token, ...token.top].map(({ id, logprob }) => [label(id), logprob])),
    ),
    text_offset,
  };
}
