/**
 * Messages to the tokens the policy reads: role, content, `<|end|>`, one message after the other.
 *
 * Invariants. A generation prompt is the assistant's role token alone, and what the model then writes, its `<|end|>`
 * included, is what rendering that reply gives: the next turn's prompt begins with the ids of this turn, so it can be
 * read from the cache and trained on. That holds when the sampled ids are the tokenizer's own encoding of their text
 * and the reply is plain text or tool calls in the form of hermes.ts, which is what the policy learned. A reply spelled
 * otherwise keeps its meaning and its text, but not its ids: the next prompt then forks from it.
 *
 * Tools are not rendered: the policy knows its environments' tools by heart and could not read a schema.
 */
import type { Message, ToolCall } from "rollcall/contract";
import { formatToolCall } from "./hermes.ts";
import { ASSISTANT, END, encodeText, SYSTEM, TOOL, USER } from "./tokenizer.ts";

/** OpenAI's message, as far as the template shows it. */
export interface TemplateMessage {
  readonly role: Message["role"];
  readonly content: string | null;
  readonly tool_calls?: readonly Pick<ToolCall, "function">[] | undefined;
}

export interface RenderOptions {
  /** Ends with the assistant's role token: the model speaks next. */
  readonly addGenerationPrompt: boolean;
  /** Leaves the last message open, to be continued. Takes the place of the generation prompt. */
  readonly continueFinalMessage?: boolean;
}

const ROLE_TOKEN = { system: SYSTEM, user: USER, text: USER, assistant: ASSISTANT, tool: TOOL };

export function renderChat(
  messages: readonly TemplateMessage[],
  { addGenerationPrompt, continueFinalMessage = false }: RenderOptions,
): number[] {
  const ids = messages.flatMap(renderMessage);
  if (continueFinalMessage) return ids.slice(0, -1);
  if (addGenerationPrompt) ids.push(ASSISTANT);
  return ids;
}

function renderMessage({ role, content, tool_calls }: TemplateMessage): number[] {
  const calls = (tool_calls ?? []).map((call) => formatToolCall(call.function));
  return [ROLE_TOKEN[role], ...encodeText((content ?? "") + calls.join("")), END];
}
