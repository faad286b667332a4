/**
 * Adds an engine's data for training to a reply: the ids of the prompt and of the sampled tokens, with logprobs. A
 * token is a byte. A message has the same tokens in any position, so a prompt continues the turn before it, with two
 * exceptions, as real templates and tokenizers have them: thoughts (up to `</think>`) are dropped from answers before
 * the last user message, and the model samples `~` as another id than the tokenizer makes of it.
 *
 * `chat_template_kwargs: {"system": "last"}` selects a template that puts the system message before the last user
 * message, as Mistral's does; `{"end": "other"}` one that ends earlier answers with another id than the model.
 */

import { isRecord } from "../../src/contract/json.ts";
import type { Message } from "../../src/contract/messages.ts";
import type { ReplyParts } from "./completion-body.ts";

const ROLES = ["system", "user", "assistant", "tool", "developer"];
/** The first token of a message, by role; smaller ids are bytes. */
const FIRST_ROLE = 256;
const END = 255;
const OTHER_END = 254;
const TILDE = "~".charCodeAt(0);
/** How the model samples `~`. */
const SAMPLED_TILDE = 512;
const MAX_MODEL_LEN = 8192;

type Body = Readonly<Record<string, unknown>>;

/** The reply with the ids of the prompt and of the answer. `body`: of the request. */
export function withTokens(reply: ReplyParts, messages: readonly Message[], body: Body = {}): ReplyParts {
  const sampled = [...bytesOf(reply.content ?? "", reply.tool_calls).map(spelled), END];
  const prompt = body["prompt"] ?? body["tokens"];
  return {
    ...reply,
    prompt_token_ids: Array.isArray(prompt) ? prompt : renderedIds({ ...body, messages }),
    token_ids: sampled,
    logprobs: sampled.map((id) => -((id % 7) + 1) / 8),
  };
}

/** The answer of `POST /tokenize` in vLLM's format. */
export function tokenizeReply(body: Body): object {
  const tokens = renderedIds(body);
  return { count: tokens.length, max_model_len: MAX_MODEL_LEN, tokens, token_strs: null };
}

/** The messages of a prompt of ids. Its last one is the answer that begins, and is left out. */
export function messagesOfIds(ids: readonly number[]): Message[] {
  const messages: { role: Message["role"]; bytes: number[] }[] = [];
  for (const id of ids) {
    const role = ROLES[id - FIRST_ROLE];
    if (role !== undefined) messages.push({ role: role as Message["role"], bytes: [] });
    else if (id !== END && id !== OTHER_END) messages.at(-1)?.bytes.push(id === SAMPLED_TILDE ? TILDE : id);
  }
  const text = (bytes: number[]) => new TextDecoder().decode(new Uint8Array(bytes));
  return messages.slice(0, -1).map(({ role, bytes }) => ({ role, content: text(bytes) }));
}

function renderedIds(body: Body): number[] {
  const messages = Array.isArray(body["messages"]) ? (body["messages"] as Message[]) : [];
  const { system, end } = isRecord(body["chat_template_kwargs"]) ? body["chat_template_kwargs"] : {};
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const shown = messages.map((message, at) => (at < asked ? withoutThoughts(message) : message));
  const ordered = system === "last" ? systemLast(shown, asked) : shown;
  const ids = ordered.flatMap((message) => {
    const tokens = tokensOf(message);
    return end === "other" && message.role === "assistant" ? [...tokens.slice(0, -1), OTHER_END] : tokens;
  });
  return body["add_generation_prompt"] === false ? ids : [...ids, opening("assistant")];
}

function withoutThoughts(message: Message): Message {
  const { role, content } = message;
  if (role !== "assistant" || typeof content !== "string") return message;
  return { ...message, content: content.split("</think>").at(-1) ?? "" };
}

function systemLast([first, ...others]: readonly Message[], asked: number): Message[] {
  if (first?.role !== "system") return first === undefined ? [] : [first, ...others];
  return [...others.slice(0, asked - 1), first, ...others.slice(asked - 1)];
}

function spelled(byte: number): number {
  return byte === TILDE ? SAMPLED_TILDE : byte;
}

function tokensOf(message: Message): number[] {
  const calls = message.role === "assistant" ? message.tool_calls : undefined;
  const said = calls?.map((call) => ({
    name: call.function.name,
    arguments: call.function.arguments,
  }));
  const content = typeof message.content === "string" ? message.content : "";
  return [opening(message.role), ...bytesOf(content, said), END];
}

function opening(role: string): number {
  return FIRST_ROLE + ROLES.indexOf(role);
}

interface SaidCall {
  readonly name: string;
  readonly arguments: string | Readonly<Record<string, unknown>>;
}

function bytesOf(content: string, calls: readonly SaidCall[] = []): number[] {
  const asked = calls.map((call) => {
    const sent = typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments);
    return `${call.name}(${sent})`;
  });
  return [...new TextEncoder().encode([content, ...asked].join(" "))];
}
