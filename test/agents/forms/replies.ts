/** Replies of a model, as the platform reads them from a server. */
import fc from "fast-check";
import type { FormReply } from "../../../src/agents/forms/form.ts";
import type { Message } from "../../../src/contract/messages.ts";
import { readChatCompletion } from "../../../src/core/rollout/chat-completion.ts";

type Members = Readonly<Record<string, unknown>>;

/** The message that the platform makes of a server's message. */
export function readMessage(wire: Members): Message {
  const usage = { prompt_tokens: 1, completion_tokens: 1, completion_tokens_details: { reasoning_tokens: 1 } };
  const choices = [{ index: 0, finish_reason: "stop", message: { role: "assistant", ...wire } }];
  return readChatCompletion({ choices, usage }, 1).message;
}

export function replyOf(message: Message, changes: Partial<FormReply> = {}): FormReply {
  return {
    id: "a1_2",
    created: 1_792_000_000,
    model: "qwen",
    message,
    finish_reason: message.tool_calls === undefined ? "stop" : "tool_calls",
    usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13, cached_tokens: 2 },
    ...changes,
  };
}

const LONG = `${"The sky is wide, ".repeat(60)}${"😀".repeat(401)}\u2028\u0085end`;

const call = (id: string, name: string, args: string, more: Members = {}) => ({
  id,
  type: "function",
  function: { name, arguments: args },
  ...more,
});

/** One message for each thing that a form must carry. */
export const MESSAGES: Readonly<Record<string, Message>> = Object.fromEntries(
  Object.entries({
    "a text": { content: "Hello, 世界." },
    "a long text with emoji and line separators": { content: LONG },
    "half a surrogate pair": { content: "cut \ud83d" },
    "spaces around the text": { content: "\n  so \n" },
    nothing: { content: null },
    "a text and reasoning": { content: "7", reasoning_content: "3 + 4 is 7." },
    "reasoning in vLLM's new member": { content: "7", reasoning: LONG },
    "reasoning only": { content: null, reasoning_content: "Hm." },
    "reasoning and an empty text": { content: "", reasoning_content: "Hm." },
    "a call without a text": { content: null, tool_calls: [call("c1", "add", '{"a":1,"b":2}')] },
    "a call with an empty text": { content: "", tool_calls: [call("c1", "add", '{"a": 1, "b": [2, {"c": "é"}]}')] },
    "several calls, a text and reasoning": {
      content: "Let me see.",
      reasoning: "Two tools.",
      tool_calls: [
        call("call_1", "add", '{ "a" : 1 }'),
        call("call_2", "add", ""),
        call("call_3", "say", JSON.stringify({ text: LONG })),
      ],
    },
    "arguments that are not JSON": { content: null, tool_calls: [call("c1", "add", '{"a": 1')] },
    "arguments that are not an object": { content: null, tool_calls: [call("c1", "add", "[1, 2]")] },
    "arguments with large and long numbers": {
      content: null,
      tool_calls: [call("c1", "add", '{"a": 12345678901234567890, "b": 1.0, "c": 1e400}')],
    },
    "members that only the server reads": {
      content: "x",
      reasoning_details: [{ type: "reasoning.encrypted", data: "abc" }],
      tool_calls: [call("c1", "add", "{}", { extra_content: { google: { thought_signature: "sig" } } })],
    },
    "a call whose id is a name of JavaScript": { content: null, tool_calls: [call("__proto__", "add", '{"":[]}')] },
    "a refusal": { content: null, refusal: "I will not." },
    "content in parts": {
      content: [
        { type: "thinking", thinking: [{ type: "text", text: "Hm." }] },
        { type: "text", text: "It is " },
        { type: "text", text: "7." },
      ],
    },
  }).map(([name, wire]) => [name, readMessage(wire)]),
);

const text = fc.oneof(fc.string(), fc.string({ unit: "binary" }), fc.string({ minLength: 380, maxLength: 900 }));
const args = fc.oneof(
  fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })).map((value) => JSON.stringify(value)),
  fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })).map((value) => JSON.stringify(value, null, 1)),
  fc.string(),
);
const calls = fc
  .uniqueArray(fc.string({ minLength: 1, maxLength: 20 }), { maxLength: 4 })
  .chain((ids) => fc.tuple(...ids.map((id) => fc.tuple(fc.constant(id), fc.string({ minLength: 1 }), args))))
  .map((given) => given.map(([id, name, json]) => call(id, name, json)));

/** Messages of any server. */
export const anyMessage: fc.Arbitrary<Message> = fc
  .record(
    {
      content: fc.oneof(text, fc.constant(null)),
      reasoning: text,
      reasoning_content: text,
      refusal: fc.oneof(fc.string(), fc.constant(null)),
      tool_calls: calls,
      extra: fc.jsonValue({ maxDepth: 2 }),
    },
    { requiredKeys: ["content"] },
  )
  .map(readMessage);
