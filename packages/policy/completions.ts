/**
 * POST /v1/completions: texts or lists of token ids, with and without streaming.
 *
 * Invariants: a prompt of ids is used unchanged, specials included; a prompt of text never contains a special. Several
 * prompts and `n` make prompts × n choices, numbered prompt by prompt. As in vLLM, the prompt's ids are in the choice
 * here; a stream has them only in its first chunk.
 */
import { type Choice, type ChoicesRequest, type Delta, sampleChoices } from "./choice.ts";
import {
  type Handler,
  headingOf,
  type PolicyContext,
  requireModel,
  type Send,
  tokenLabel,
  usageOf,
  versionsOf,
} from "./reply.ts";
import { CompletionRequest, parseSampled, RequestError } from "./request-schemas.ts";
import type { SampledToken } from "./sampler.ts";
import { completionPlan, roomFor } from "./sampling.ts";
import { encodeText } from "./tokenizer.ts";

type Prompts = readonly (readonly number[])[];

export const completions: Handler = async (context, { json, signal }) => {
  const { engine } = context;
  const request = parseSampled(CompletionRequest, json(), ["prompt_logprobs"]);
  requireModel(context, request.model);
  const plan = completionPlan(request, context.serving);
  const prompts = promptsOf(request.prompt, engine.vocabularySize);
  // Checked before a stream begins, because an error must set the status.
  for (const prompt of prompts) roomFor(plan, prompt.length, engine.contextLength);
  const promptLogprobs = request.prompt_logprobs ?? undefined;
  if (request.stream && promptLogprobs !== undefined && promptLogprobs > 0) {
    throw new RequestError(400, "prompt_logprobs: not available with stream: true", "prompt_logprobs");
  }
  const wanted = { prompts, plan, promptLogprobs, signal };
  if (request.stream) return { kind: "events", run: (send) => streamCompletions(context, request, wanted, send) };
  const choices = await sampleChoices(engine, wanted);
  const body = {
    ...headingOf(context, "cmpl", "text_completion", request.request_id),
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
    logprobs: logprobsOf(choice.tokens, request, 0),
    finish_reason: choice.finishReason,
    stop_reason: choice.stopReason,
    prompt_logprobs: promptLogprobsOf(choice, request),
  };
}

/** As in vLLM: null for the first token; then by token id, the token itself and the likeliest ones. */
function promptLogprobsOf({ promptLogprobs }: Choice, request: CompletionRequest): object | null {
  if (request.prompt_logprobs === undefined || request.prompt_logprobs === null) return null;
  const entries = promptLogprobs.map(({ own, top }) => {
    const shown = [...top.map((token, at) => ({ ...token, rank: at + 1 })), own];
    return Object.fromEntries(
      shown.map(({ id, logprob, rank }) => [id, { logprob, rank, decoded_token: tokenLabel(id, false) }]),
    );
  });
  return [null, ...entries];
}

/** A chunk per token, a chunk per choice with its finish reason, and the usage if the request asks for it. */
async function streamCompletions(
  context: PolicyContext,
  request: CompletionRequest,
  wanted: ChoicesRequest,
  send: Send,
): Promise<void> {
  const heading = headingOf(context, "cmpl", "text_completion", request.request_id);
  const wireChunk = (index: number, text: string, more: object) => {
    return { index, text, logprobs: null, finish_reason: null, stop_reason: null, ...more };
  };
  const offsets = new Map<number, number>();
  const onDelta = ({ index, text, tokens }: Delta) => {
    const before = offsets.get(index);
    const labels = tokens.map(({ id }) => tokenLabel(id, request.return_tokens_as_token_ids));
    offsets.set(index, (before ?? 0) + labels.join("").length);
    const prompt = wanted.prompts[Math.floor(index / wanted.plan.choices)];
    const more = {
      logprobs: logprobsOf(tokens, request, before ?? 0),
      ...(request.return_token_ids && { token_ids: tokens.map(({ id }) => id) }),
      ...(request.return_token_ids && before === undefined && { prompt_token_ids: prompt }),
    };
    send({ ...heading, choices: [wireChunk(index, text, more)] });
  };
  const choices = await sampleChoices(context.engine, { ...wanted, onDelta });
  for (const { index, finishReason, stopReason } of choices) {
    const end = { finish_reason: finishReason, stop_reason: stopReason };
    send({ ...heading, choices: [wireChunk(index, "", end)], ...versionsOf(choices) });
  }
  if (request.stream_options?.include_usage) {
    send({ ...heading, choices: [], usage: usageOf(choices), ...versionsOf(choices) });
  }
}

/**
 * OpenAI's older format, one list per column. `offset`: the number of characters in the choice before these tokens.
 * Null if the request asked for no logprobs.
 */
function logprobsOf(tokens: readonly SampledToken[], request: CompletionRequest, offset: number): object | null {
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
    // As in vLLM, the sampled token is among its alternatives.
    top_logprobs: tokens.map((token) =>
      Object.fromEntries([token, ...token.top].map(({ id, logprob }) => [label(id), logprob])),
    ),
    text_offset,
  };
}
