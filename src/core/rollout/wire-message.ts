/** A message as an OpenAI-compatible endpoint gets it: the inverse of what `readChatCompletion` makes of a reply. */
import { parseExactJson } from "../../contract/exact-json.ts";
import { isRecord } from "../../contract/json.ts";
import type { Message, ToolCall } from "../../contract/messages.ts";
import { REASONING } from "./chat-completion.ts";

/** `text` is our own role (a bare string); endpoints call it `user`. Endpoints refuse a list without parts. */
export function wireMessage(message: Message): Record<string, unknown> {
  const role = message.role === "text" ? "user" : message.role;
  const empty = Array.isArray(message.content) && message.content.length === 0;
  const { thinking_blocks: _, provider_fields, reasoning_name, reasoning_content, tool_calls, ...sent } = message;
  const fields = fieldsIn(provider_fields);
  const thoughts = REASONING.some((name) => name in fields) ? undefined : reasoning_content;
  return {
    ...fields,
    ...sent,
    ...(thoughts !== undefined && { [reasoning_name ?? "reasoning_content"]: thoughts }),
    ...(tool_calls !== undefined && { tool_calls: tool_calls.map(wireCall) }),
    role,
    ...(empty && { content: "" }),
  };
}

/** A tool call with the further members that its server sent. */
function wireCall({ provider_fields, function: called, ...call }: ToolCall): Record<string, unknown> {
  const { function: within, ...beside } = fieldsIn(provider_fields);
  return { ...beside, ...call, function: { ...(isRecord(within) && within), ...called } };
}

/** Members as a server sent them, with all digits of their numbers. Empty if an environment damaged the text. */
function fieldsIn(text: string | undefined): Readonly<Record<string, unknown>> {
  if (text === undefined) return {};
  try {
    const fields = parseExactJson(text);
    return isRecord(fields) ? fields : {};
  } catch (thrown) {
    if (thrown instanceof SyntaxError || thrown instanceof RangeError) return {};
    throw thrown;
  }
}
