/**
 * POST /v1/chat/completions.
 *
 * Invariants. Tool calls are parsed only where the request has tools and did not say `tool_choice: "none"`; token ids,
 * logprobs and usage are those of the tokens as sampled either way. The prompt's ids stand at the top level, a
 * choice's ids in the choice, as in vLLM.
 */
import { renderChat } from "./chat-template.ts";
import { type Choice, type Delta, longestBeginning, sampleChoices } from "./choice.ts";
import type { Engine } from "./engine.ts";
import { CALL_START, parseToolCalls } from "./hermes.ts";
import {
  type Handler,
  type Heading,
  headingOf,
  hexId,
  type PolicyContext,
  requireModel,
  type Send,
  tokenLabel,
  usageOf,
  versionsOf,
} from "./reply.ts";
import { ChatRequest, parseSampled, RequestError } from "./request-schemas.ts";
import type { SampledToken } from "./sampler.ts";
import { chatPlan, roomFor, type SamplingPlan } from "./sampling.ts";
import { tokenBytes } from "./tokenizer.ts";

export interface WireToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface SaidMessage {
  readonly content: string | null;
  readonly toolCalls: readonly WireToolCall[];
}

interface ChatStream {
  readonly engine: Engine;
  readonly heading: Heading;
  readonly request: ChatRequest;
  readonly plan: SamplingPlan;
  readonly prompt: readonly number[];
  readonly signal: AbortSignal;
}

export const chatCompletions: Handler = async (context, { json, signal }) => {
  const request = parseSampled(ChatRequest, json());
  requireModel(context, request.model);
  checkToolChoice(request);
  const plan = chatPlan(request, context.serving);
  const prompt = promptOf(request);
  // Checked before a stream begins: what is wrong must be its status.
  roomFor(plan, prompt.length, context.engine.contextLength);
  if (request.stream) {
    const heading = headingOf(context, "chatcmpl", "chat.completion.chunk", request.request_id);
    const job = { engine: context.engine, heading, request, plan, prompt, signal };
    return { kind: "events", run: (send) => streamChat(job, send) };
  }
  const choices = await sampleChoices(context.engine, { prompts: [prompt], plan, signal });
  return { kind: "json", body: chatBody(context, request, prompt, choices) };
};

/** The request's messages as token ids. Throws a 400 when both ways to end the prompt are asked for. */
export function promptOf(
  request: Pick<ChatRequest, "messages" | "add_generation_prompt" | "continue_final_message">,
): readonly number[] {
  const continueFinalMessage = request.continue_final_message ?? false;
  const addGenerationPrompt = request.add_generation_prompt ?? true;
  if (continueFinalMessage && addGenerationPrompt) {
    throw new RequestError(
      400,
      "continue_final_message: set add_generation_prompt to false as well; the two exclude each other",
      "continue_final_message",
    );
  }
  return renderChat(request.messages, { addGenerationPrompt, continueFinalMessage });
}

function checkToolChoice({ tool_choice: choice, tools }: ChatRequest): void {
  if (choice === undefined || choice === null || choice === "none") return;
  if (choice !== "auto") {
    throw new RequestError(
      400,
      `tool_choice: only "auto" and "none" are supported, a call cannot be forced`,
      "tool_choice",
    );
  }
  if (tools === undefined || tools === null) {
    throw new RequestError(400, "When using `tool_choice`, `tools` must be set.", "tool_choice");
  }
}

function chatBody(
  context: PolicyContext,
  request: ChatRequest,
  prompt: readonly number[],
  choices: readonly Choice[],
): object {
  return {
    ...headingOf(context, "chatcmpl", "chat.completion", request.request_id),
    ...(request.return_token_ids && { prompt_token_ids: prompt }),
    prompt_logprobs: null,
    choices: choices.map((choice) => wireChoice(choice, request)),
    usage: usageOf(choices),
    ...versionsOf(choices),
  };
}

function wireChoice(choice: Choice, request: ChatRequest): object {
  const said = messageOf(choice.text, request);
  return {
    index: choice.index,
    message: {
      role: "assistant",
      content: said.content,
      refusal: null,
      reasoning: null,
      ...(said.toolCalls.length > 0 && { tool_calls: said.toolCalls }),
    },
    ...(request.return_token_ids && { token_ids: choice.tokens.map(({ id }) => id) }),
    logprobs: chatLogprobs(choice.tokens, request),
    finish_reason: finishReason(choice, said),
    stop_reason: choice.stopReason,
  };
}

/**
 * A chat completion as it comes, in vLLM's chunks: per choice the role, then a delta per token, then how it ended.
 *
 * Invariants. Joined, the chunks say what the whole reply would have said. Text that may be a tool call in the making
 * is held back until the choice ends and it is known to be one or not. The prompt's ids stand in the first chunk only.
 */
export async function streamChat(stream: ChatStream, send: Send): Promise<void> {
  const { engine, heading, request, plan, prompt, signal } = stream;
  const held = Array.from({ length: plan.choices }, () => new HeldCalls(parsesTools(request)));
  const chunk = (index: number, delta: object, more: object = {}) =>
    send({ ...heading, choices: [wireChunk(index, delta, more)] });
  for (const index of held.keys()) {
    const ids = index === 0 && request.return_token_ids ? { prompt_token_ids: prompt } : {};
    const delta = { role: "assistant", content: "" };
    send({ ...heading, ...ids, choices: [wireChunk(index, delta, {})] });
  }
  const onDelta = ({ index, text, tokens }: Delta) => {
    const content = held[index]?.push(text) ?? "";
    const shown = request.return_token_ids || request.logprobs || content !== "";
    if (!shown) return;
    chunk(index, content === "" ? {} : { content }, sampled(tokens, request));
  };
  const choices = await sampleChoices(engine, { prompts: [prompt], plan, signal, onDelta });
  for (const choice of choices) {
    const said = messageOf(choice.text, request);
    const { index } = choice;
    const content = held[index]?.rest(said.toolCalls.length > 0) ?? "";
    if (content !== "") chunk(index, { content });
    for (const part of said.toolCalls.flatMap(callDeltas)) chunk(index, { tool_calls: [part] });
    const ended = { finish_reason: finishReason(choice, said), stop_reason: choice.stopReason };
    send({ ...heading, choices: [wireChunk(index, {}, ended)], ...versionsOf([choice]) });
  }
  if (request.stream_options?.include_usage) {
    send({ ...heading, choices: [], usage: usageOf(choices), ...versionsOf(choices) });
  }
}

function wireChunk(index: number, delta: object, more: object): object {
  return { index, delta, logprobs: null, finish_reason: null, ...more };
}

function sampled(tokens: Delta["tokens"], request: ChatRequest): object {
  if (tokens.length === 0) return {};
  return {
    logprobs: chatLogprobs(tokens, request),
    ...(request.return_token_ids && { token_ids: tokens.map(({ id }) => id) }),
  };
}

/** OpenAI's form: first which function, then its arguments. */
function callDeltas({ id, type, function: { name, arguments: sent } }: WireToolCall, index: number) {
  return [
    { index, id, type, function: { name, arguments: "" } },
    { index, function: { arguments: sent } },
  ];
}

/** Keeps back what may be a tool call: from the first `<tool_call>` on, or what could become one. */
class HeldCalls {
  readonly #watches: boolean;
  #held = "";

  constructor(watches: boolean) {
    this.#watches = watches;
  }

  /** What is plain content already. */
  push(text: string): string {
    if (!this.#watches) return text;
    const all = this.#held + text;
    const call = all.indexOf(CALL_START);
    const safe = call >= 0 ? call : all.length - longestBeginning(all, [CALL_START]);
    this.#held = all.slice(safe);
    return all.slice(0, safe);
  }

  /** At the end: what was held is content after all, unless it was read as calls. */
  rest(wereCalls: boolean): string {
    return wereCalls ? "" : this.#held;
  }
}

/** What a chat completion says of one choice, whole or in chunks: message, tool calls, logprobs, finish reason. */

/** As in vLLM, text is looked through for calls only where the request offers tools and lets the model choose. */
export function parsesTools(request: ChatRequest): boolean {
  return (request.tools?.length ?? 0) > 0 && request.tool_choice !== "none";
}

export function messageOf(text: string, request: ChatRequest): SaidMessage {
  if (!parsesTools(request)) return { content: text, toolCalls: [] };
  const { content, toolCalls } = parseToolCalls(text);
  const allowed = request.parallel_tool_calls === false ? toolCalls.slice(0, 1) : toolCalls;
  const wire = allowed.map((call) => {
    const { name, arguments: sent } = call;
    const id = `chatcmpl-tool-${hexId()}`;
    return { id, type: "function" as const, function: { name, arguments: sent } };
  });
  return { content, toolCalls: wire };
}

export function finishReason(choice: Choice, message: SaidMessage): string {
  const called = message.toolCalls.length > 0 && choice.finishReason !== "abort";
  return called ? "tool_calls" : choice.finishReason;
}

/** Null where the request asked for none. */
export function chatLogprobs(tokens: readonly SampledToken[], request: ChatRequest): object | null {
  if (!request.logprobs) return null;
  const entry = ({ id, logprob }: Pick<SampledToken, "id" | "logprob">) => ({
    token: tokenLabel(id, request.return_tokens_as_token_ids),
    logprob,
    bytes: tokenBytes(id),
  });
  const content = tokens.map((token) => ({
    ...entry(token),
    top_logprobs: token.top.map(entry),
  }));
  return { content };
}
