/** The messages that an agent sends back, as they are stored: then a history that is the same is stored once. */
import { canonicalJson, findOddity, isRecord, type Json } from "../../contract/json.ts";
import { type Message, type Messages, publicMessage, type ToolCall } from "../../contract/messages.ts";
import { historyOf, type Turn } from "../../contract/trajectory.ts";

/**
 * The messages of a call, with those of the model as they are stored. An agent does not return what only its model's
 * server needs, such as signatures, and some agents write the arguments of tool calls as JSON again, with other spaces.
 */
export function withStoredMessages(
  messages: Messages,
  turns: readonly Pick<Turn, "prompt" | "completion">[],
): Messages {
  if (turns.length === 0) return messages;
  const history = historyOf(turns);
  const said = new Map(turns.map(({ completion }) => [textKey(completion), completion]));
  return messages.map((message, at) => {
    const before = history[at];
    if (before !== undefined && isSameText(before, message)) return before;
    return message.role === "assistant" ? (said.get(textKey(message)) ?? message) : message;
  });
}

function isSameText(stored: Message, given: Message): boolean {
  if (stored.role !== given.role) return false;
  return stored.role === "assistant"
    ? textKey(stored) === textKey(given)
    : JSON.stringify(stored) === JSON.stringify(given);
}

/** The parts of a model's message that every agent returns. */
function textKey(message: Message): string {
  const { content, tool_calls = [] } = publicMessage(message);
  return JSON.stringify([content === "" ? null : content, tool_calls.map(callKey)]);
}

function callKey({ function: called, ...call }: ToolCall): unknown {
  return { ...call, function: { ...called, arguments: sameArguments(called.arguments) } };
}

/** Equal for all texts of the same JSON object. Another text is compared as it is. */
function sameArguments(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && findOddity(value as Json, "") === null ? canonicalJson(value as Json) : text;
  } catch (thrown) {
    if (thrown instanceof SyntaxError || thrown instanceof RangeError) return text;
    throw thrown;
  }
}
