/**
 * A plain completion as it comes: a chunk per token, one per choice that says how it ended, and the usage where it was
 * asked for. The ids of a choice's prompt stand in its first chunk only.
 */
import { type Delta, sampleChoices } from "./choice.ts";
import { completionLogprobs } from "./completion-logprobs.ts";
import type { Engine } from "./engine.ts";
import { type Heading, type Send, tokenLabel, usageOf, versionsOf } from "./reply.ts";
import type { CompletionRequest } from "./request-schemas.ts";
import type { SamplingPlan } from "./sampling.ts";

interface CompletionStream {
  readonly engine: Engine;
  readonly heading: Heading;
  readonly request: CompletionRequest;
  readonly plan: SamplingPlan;
  readonly prompts: readonly (readonly number[])[];
  readonly signal: AbortSignal;
}

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
