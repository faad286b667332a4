/**
 * POST /v1/chat/completions, with and without streaming.
 *
 * Invariants: tool calls are parsed only if the request has tools and not `tool_choice: "none"`; token ids, logprobs
 * and usage are always those of the sampled tokens. As in vLLM, the prompt's ids are at the top level and a choice's
 * ids are in the choice; a stream has the prompt's ids only in its first chunk. The joined chunks of a stream equal the
 * reply without streaming.
 */
import { renderChat } from "./chat-template.ts";
import { type Choice, type ChoicesRequest, type Delta, longestBeginning, sampleChoices } from "./choice.ts";
import { CALL_START, parseToolCalls } from "./hermes.ts";
import {
  type Handler,
  headingOf,
  hexId,
  type PolicyContext,
  type PolicyReply,
  requireModel,
  type Send,
  tokenLabel,
  usageOf,
  versionsOf,
} from "./reply.ts";
import { ChatRequest, ChatTokensRequest, parseSampled, RequestError } from "./request-schemas.ts";
import type { SampledToken } from "./sampler.ts";
import { chatPlan, roomFor } from "./sampling.ts";
import { tokenBytes } from "./tokenizer.ts";

export const chatCompletions: Handler = async (context, { json, signal }) => {
  const request = parseSampled(ChatRequest, json());
  return await completeChat(context, request, promptOf(request), signal);
};

/** POST /v1/chat/completions/tokens, prime-rl's: the same, but the prompt is the ids in `tokens`. */
export const chatCompletionsOfTokens: Handler = async (context, { json, signal }) => {
  const request = parseSampled(ChatTokensRequest, json());
  const { vocabularySize } = context.engine;
  const wrong = request.tokens.find((id) => id >= vocabularySize);
  if (wrong === undefined) return await completeChat(context, request, request.tokens, signal);
  const message = `tokens: id ${wrong} is out of the vocabulary of ${vocabularySize}`;
  throw new RequestError(400, message, "tokens");
};

async function completeChat(
  context: PolicyContext,
  request: ChatRequest,
  prompt: readonly number[],
  signal: AbortSignal,
): Promise<PolicyReply> {
  requireModel(context, request.model);
  checkToolChoice(request);
  const plan = chatPlan(request, context.serving);
  // Checked before a stream begins, because an error must set the status.
  roomFor(plan, prompt.length, context.engine.contextLength);
  const wanted = { prompts: [prompt], plan, signal };
  if (request.stream) return { kind: "events", run: (send) => streamChat(context, request, wanted, send) };
  const choices = await sampleChoices(context.engine, wanted);
  const body = {
    ...headingOf(context, "chatcmpl", "chat.completion", request.request_id),
    ...(request.return_token_ids && { prompt_token_ids: prompt }),
    prompt_logprobs: null,
    choices: choices.map((choice) => wireChoice(choice, request)),
    usage: usageOf(choices),
    ...versionsOf(choices),
  };
  return { kind: "json", body };
}

/** The request's messages as token ids. Throws a 400 if the request asks for both ways to end the prompt. */
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

function wireChoice(choice: Choice, request: ChatRequest): object {
  const { content, toolCalls, finishReason } = messageOf(choice, request);
  return {
    index: choice.index,
    message: {
      role: "assistant",
      content,
      refusal: null,
      reasoning: null,
      ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    },
    ...(request.return_token_ids && { token_ids: choice.tokens.map(({ id }) => id) }),
    logprobs: logprobsOf(choice.tokens, request),
    finish_reason: finishReason,
    stop_reason: choice.stopReason,
  };
}

/** As in vLLM, the text is searched for calls only if the request offers tools and lets the model choose. */
function parsesTools(request: ChatRequest): boolean {
  return (request.tools?.length ?? 0) > 0 && request.tool_choice !== "none";
}

/** The message of a choice in OpenAI's form, and its finish reason. */
function messageOf({ text, finishReason }: Choice, request: ChatRequest) {
  if (!parsesTools(request)) return { content: text, toolCalls: [], finishReason };
  const { content, toolCalls } = parseToolCalls(text);
  const allowed = request.parallel_tool_calls === false ? toolCalls.slice(0, 1) : toolCalls;
  return {
    content,
    toolCalls: allowed.map((call) => ({ id: `chatcmpl-tool-${hexId()}`, type: "function", function: call })),
    finishReason: allowed.length > 0 && finishReason !== "abort" ? "tool_calls" : finishReason,
  };
}

/** Null if the request asked for none. */
function logprobsOf(tokens: readonly SampledToken[], request: ChatRequest): object | null {
  if (!request.logprobs) return null;
  const entry = ({ id, logprob }: Pick<SampledToken, "id" | "logprob">) => ({
    token: tokenLabel(id, request.return_tokens_as_token_ids),
    logprob,
    bytes: tokenBytes(id),
  });
  return { content: tokens.map((token) => ({ ...entry(token), top_logprobs: token.top.map(entry) })) };
}

/** Streams vLLM's chunks: per choice the role, then a delta per token, then the finish reason. */
async function streamChat(
  context: PolicyContext,
  request: ChatRequest,
  wanted: ChoicesRequest,
  send: Send,
): Promise<void> {
  const heading = headingOf(context, "chatcmpl", "chat.completion.chunk", request.request_id);
  const { prompts, plan } = wanted;
  const wireChunk = (index: number, delta: object, more: object = {}) => {
    return { index, delta, logprobs: null, finish_reason: null, ...more };
  };
  const sendChunk = (index: number, delta: object, more?: object) =>
    send({ ...heading, choices: [wireChunk(index, delta, more)] });
  const held = Array.from({ length: plan.choices }, () => new HeldCalls(parsesTools(request)));
  for (const index of held.keys()) {
    const ids = index === 0 && request.return_token_ids ? { prompt_token_ids: prompts[0] } : {};
    send({ ...heading, ...ids, choices: [wireChunk(index, { role: "assistant", content: "" })] });
  }
  const onDelta = ({ index, text, tokens }: Delta) => {
    const content = held[index]?.push(text) ?? "";
    const shown = request.return_token_ids || request.logprobs || content !== "";
    if (shown) sendChunk(index, content === "" ? {} : { content }, tokenFields(tokens, request));
  };
  const choices = await sampleChoices(context.engine, { ...wanted, onDelta });
  for (const choice of choices) {
    const { index, stopReason } = choice;
    const { toolCalls, finishReason } = messageOf(choice, request);
    const content = held[index]?.end(toolCalls.length > 0) ?? "";
    if (content !== "") sendChunk(index, { content });
    for (const [at, { id, type, function: call }] of toolCalls.entries()) {
      // OpenAI's form: first the function's name, then its arguments.
      sendChunk(index, { tool_calls: [{ index: at, id, type, function: { name: call.name, arguments: "" } }] });
      sendChunk(index, { tool_calls: [{ index: at, function: { arguments: call.arguments } }] });
    }
    const end = { finish_reason: finishReason, stop_reason: stopReason };
    send({ ...heading, choices: [wireChunk(index, {}, end)], ...versionsOf([choice]) });
  }
  if (request.stream_options?.include_usage) {
    send({ ...heading, choices: [], usage: usageOf(choices), ...versionsOf(choices) });
  }
}

function tokenFields(tokens: Delta["tokens"], request: ChatRequest): object {
  if (tokens.length === 0) return {};
  return {
    logprobs: logprobsOf(tokens, request),
    ...(request.return_token_ids && { token_ids: tokens.map(({ id }) => id) }),
  };
}

/** Holds back text from the first `<tool_call>` on, until the choice ends and it is clear whether it is a call. */
class HeldCalls {
  readonly #watches: boolean;
  #held = "";

  constructor(watches: boolean) {
    this.#watches = watches;
  }

  /** Returns the part that is certainly content. */
  push(text: string): string {
    if (!this.#watches) return text;
    const all = this.#held + text;
    const call = all.indexOf(CALL_START);
    const safe = call >= 0 ? call : all.length - longestBeginning(all, [CALL_START]);
    this.#held = all.slice(safe);
    return all.slice(0, safe);
  }

  /** The held text is content after all, unless it was parsed as calls. */
  end(wereCalls: boolean): string {
    return wereCalls ? "" : this.#held;
  }
}
