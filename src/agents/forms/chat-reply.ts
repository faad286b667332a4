/** A reply as a chat completion of OpenAI, whole and in chunks. */
import type { Json, JsonObject } from "../../contract/json.ts";
import { type Message, textOf, type Usage } from "../../contract/messages.ts";
import { wireMessage } from "../../core/rollout/wire-message.ts";
import { eventText, piecesOf } from "./event-text.ts";
import type { FormReply } from "./form.ts";

export function chatReply(reply: FormReply): JsonObject {
  const shown = shownMessage(reply.message);
  const message = { role: "assistant", ...shown, ...(shown["refusal"] === undefined && { refusal: null }) };
  return {
    ...envelope(reply, "chat.completion"),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(reply) }],
    ...(reply.usage !== null && { usage: usageOf(reply.usage) }),
  };
}

/**
 * Members besides the text and the arguments are each in one chunk: OpenAI's SDK keeps the last value of a member that
 * it does not know.
 */
export function* chatEvents(reply: FormReply, echo: JsonObject): Iterable<string> {
  const asked = echo["include_usage"] === true;
  const chunk = (choices: Json, usage: Json = null) =>
    eventText(null, { ...envelope(reply, "chat.completion.chunk"), choices, ...(asked && { usage }) });
  const piece = (delta: JsonObject, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason }]);
  const { role: _, content, tool_calls, ...others } = shownMessage(reply.message);
  yield piece({ role: "assistant", content: content === null ? null : "" });
  if (Object.keys(others).length > 0) yield piece(others);
  for (const text of piecesOf(content ?? "")) yield piece({ content: text });
  for (const [index, { function: called, ...call }] of (tool_calls ?? []).entries()) {
    yield piece({ tool_calls: [{ index, ...call, function: { ...called, arguments: "" } }] });
    for (const text of piecesOf(called.arguments)) {
      yield piece({ tool_calls: [{ index, function: { arguments: text } }] });
    }
  }
  yield piece({}, finishReason(reply));
  if (asked && reply.usage !== null) yield chunk([], usageOf(reply.usage));
  yield "data: [DONE]\n\n";
}

type ShownMessage = JsonObject & {
  readonly content: string | null;
  readonly tool_calls?: readonly (JsonObject & { readonly function: JsonObject & { readonly arguments: string } })[];
};

function shownMessage(message: Message): ShownMessage {
  const { content } = message;
  const isList = typeof content !== "string" && content !== null;
  const shown = { ...message, content: isList ? textOf(message) : content };
  return { ...wireMessage(shown), ...(isList && { content_parts: content }) } as ShownMessage;
}

function envelope({ id, created, model }: FormReply, object: string): JsonObject {
  return { id: `chatcmpl-${id}`, object, created, model };
}

/** OpenAI has no word for a call that was aborted, or for an unknown reason. */
function finishReason({ finish_reason, message }: FormReply): string {
  if (finish_reason !== null && finish_reason !== "abort") return finish_reason;
  return message.tool_calls === undefined ? "stop" : "tool_calls";
}

function usageOf({ cached_tokens = 0, ...usage }: Usage): JsonObject {
  return { ...usage, prompt_tokens_details: { cached_tokens } };
}
