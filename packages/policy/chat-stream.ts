/**
 * A chat completion as it comes, in vLLM's chunks: per choice the role, then a delta per token, then how it ended.
 *
 * Invariants. Joined, the chunks say what the whole reply would have said. Text that may be a tool call in the making
 * is held back until the choice ends and it is known to be one or not. The prompt's ids stand in the first chunk only.
 */
import { chatLogprobs, finishReason, messageOf, parsesTools, type WireToolCall } from "./chat-reply.ts";
import { type Delta, sampleChoices } from "./choice.ts";
import type { Engine } from "./engine.ts";
import { CALL_START } from "./hermes.ts";
import { type Heading, type Send, usageOf, versionsOf } from "./reply.ts";
import type { ChatRequest } from "./request-schemas.ts";
import type { SamplingPlan } from "./sampling.ts";
import { longestBeginning } from "./stop-text.ts";

interface ChatStream {
  readonly engine: Engine;
  readonly heading: Heading;
  readonly request: ChatRequest;
  readonly plan: SamplingPlan;
  readonly prompt: readonly number[];
  readonly signal: AbortSignal;
}

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
