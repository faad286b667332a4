/**
 * Converts messages to the tokens that the policy reads: role, content, `<|end|>`, one message after the other.
 *
 * Invariants: a generation prompt is only the assistant's role token. What the model then writes, its `<|end|>`
 * included, is identical to the rendering of that reply. The next turn's prompt therefore begins with the ids of this
 * turn, can be read from the cache and can be trained on. This holds if the sampled ids are the tokenizer's own
 * encoding of their text, and the reply is plain text or tool calls in the form of hermes.ts, which the policy learned.
 * A reply in another spelling keeps its meaning and its text, but not its ids: the next prompt then differs from that
 * point on.
 *
 * Tools are not rendered: the policy was trained on its environments' tools and could not read a schema.
 */
import type { Message, ToolCall } from "rollcall/contract";
import { formatToolCall } from "./hermes.ts";
import { ASSISTANT, END, encodeText, SYSTEM, TOOL, USER } from "./tokenizer.ts";

/** OpenAI's message, reduced to what the template renders. */
export interface TemplateMessage {
  readonly role: Message["role"];
  readonly content: string | null;
  readonly tool_calls?: readonly Pick<ToolCall, "function">[] | undefined;
}

export interface RenderOptions {
  /** Ends with the assistant's role token, so that the model writes next. */
  readonly addGenerationPrompt: boolean;
  /** Leaves the last message open, so that the model continues it. Replaces the generation prompt. */
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
