/**
 * What Responses and Anthropic's messages do not show of an assistant's message, as a text that the agent sends back
 * unread: in a reasoning item's `encrypted_content`, in a thinking block's `signature`, or, without reasoning, in the
 * member `carried` of the first item or block. Then the message of a later request is equal to the original. If an agent
 * leaves the text out, or changes the message, the message is what it shows.
 */
import * as z from "zod";
import { canonicalJson, findOddity, isRecord, type Json, type JsonObject } from "../../contract/json.ts";
import { Content, type Message, type ToolCall, textOf } from "../../contract/messages.ts";
import { type Path, refuse } from "./fields.ts";

/** What both forms show of a message. */
export interface ShownMessage {
  readonly text: string;
  /** "" if there is none. */
  readonly reasoning: string;
  readonly calls: readonly ShownCall[];
}

export interface ShownCall {
  readonly id: string;
  readonly name: string;
  /** JSON, unless the model wrote something else. */
  readonly arguments: string;
}

const PREFIX = "carried:";
const OptionalText = z.string().optional();
const Carried = z.strictObject({
  content: Content.optional(),
  reasoning_name: OptionalText,
  provider_fields: OptionalText,
  calls: z
    .array(z.strictObject({ id: z.string(), arguments: OptionalText, provider_fields: OptionalText }))
    .default([]),
});
type Carried = z.infer<typeof Carried>;
const NOTHING: Carried = { calls: [] };

export function shownMessage(message: Message): ShownMessage {
  return {
    text: textOf(message),
    reasoning: message.reasoning_content ?? "",
    calls: (message.tool_calls ?? []).map(({ id, function: called }) => ({ id, ...called })),
  };
}

/** Null if the message is all shown. `shown`: what `assistantMessage` gets of it. */
export function carriedText(message: Message, shown: ShownMessage): string | null {
  const { reasoning_name, provider_fields, tool_calls = [] } = message;
  const calls = tool_calls.flatMap((call, at) => {
    const hidden = hiddenOfCall(call, shown.calls[at]);
    return Object.keys(hidden).length === 0 ? [] : [{ id: call.id, ...hidden }];
  });
  const carried = {
    ...(message.content !== shown.text && { content: message.content }),
    ...(reasoning_name !== undefined && { reasoning_name }),
    ...(provider_fields !== undefined && { provider_fields }),
    ...(calls.length > 0 && { calls }),
  };
  return Object.keys(carried).length === 0 ? null : PREFIX + JSON.stringify(carried);
}

function hiddenOfCall({ function: called, provider_fields }: ToolCall, shown: ShownCall | undefined) {
  return {
    ...(called.arguments !== shown?.arguments && { arguments: called.arguments }),
    ...(provider_fields !== undefined && { provider_fields }),
  };
}

/**
 * The assistant's message, with its members in the order of `readChatCompletion`. `carried`: null if the agent sent
 * none; a text of another origin (a signature of another provider) counts as none. `path`: where it is. Throws
 * `FormError` if the text was changed.
 */
export function assistantMessage(shown: ShownMessage, carried: string | null, path: Path): Message {
  const hidden = carried?.startsWith(PREFIX) === true ? readCarried(carried.slice(PREFIX.length), path) : NOTHING;
  const { reasoning_name, provider_fields } = hidden;
  const ofCall = new Map(hidden.calls.map((call) => [call.id, call]));
  const tool_calls = shown.calls.map((call) => callOf(call, ofCall.get(call.id)));
  return {
    role: "assistant",
    content: contentOf(shown, hidden),
    ...(shown.reasoning !== "" && { reasoning_content: shown.reasoning }),
    ...(reasoning_name !== undefined && shown.reasoning !== "" && { reasoning_name }),
    ...(provider_fields !== undefined && { provider_fields }),
    ...(tool_calls.length > 0 && { tool_calls }),
  };
}

function readCarried(text: string, path: Path): Carried {
  const parsed = Carried.safeParse(objectIn(text));
  return parsed.success ? parsed.data : refuse(path, "was changed: send it back as it was received");
}

function contentOf({ text }: ShownMessage, { content }: Carried): Message["content"] {
  if (content === undefined) return text;
  return textOf({ role: "assistant", content }) === text ? content : text;
}

function callOf({ id, name, arguments: shown }: ShownCall, hidden: Carried["calls"][number] | undefined): ToolCall {
  const { arguments: original = shown, provider_fields } = hidden ?? {};
  const kept = original === shown || isSameJson(original, shown);
  return {
    id,
    type: "function",
    function: { name, arguments: kept ? original : shown },
    ...(provider_fields !== undefined && { provider_fields }),
  };
}

/** An agent may change the arguments of a call in its history. Numbers are compared as an agent in JavaScript reads them. */
function isSameJson(one: string, other: string): boolean {
  const [first, second] = [objectIn(one), objectIn(other)];
  return first !== null && second !== null && canonicalJson(first) === canonicalJson(second);
}

/** The JSON object in a text; null if it has none, or one that cannot be written again. */
export function objectIn(text: string, parse: (text: string) => unknown = JSON.parse): JsonObject | null {
  const value = jsonIn(text, parse);
  return isRecord(value) && findOddity(value as Json, "") === null ? (value as JsonObject) : null;
}

function jsonIn(text: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return null;
    throw thrown;
  }
}
