/** An agent sends back what it got: the message that the platform reads is the one that the model's server sent. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FormError, type FormReply } from "../../../src/agents/forms/form.ts";
import { FORMS } from "../../../src/agents/forms/forms.ts";
import { parseKeepingNumbers } from "../../../src/contract/exact-json.ts";
import type { Json, JsonObject } from "../../../src/contract/json.ts";
import type { Message } from "../../../src/contract/messages.ts";
import { readChatCompletion } from "../../../src/core/rollout/chat-completion.ts";
import { readReplyText } from "../../../src/core/rollout/reply-text.ts";
import { anyMessage, MESSAGES, replyOf } from "./replies.ts";

const USER = { role: "user", content: "Add." };

type Members = Readonly<Record<string, unknown>>;

/** Requests whose history has the answer, as an agent makes them without an SDK. */
const HISTORIES: Readonly<Record<keyof typeof FORMS, (answer: Members) => Members>> = {
  chat: ({ choices }) => {
    const [choice] = choices as readonly Members[];
    return { model: "m", messages: [USER, choice?.["message"]] };
  },
  responses: ({ output }) => ({ model: "m", input: [USER, ...(output as readonly Json[])] }),
  messages: ({ content }) => ({ model: "m", max_tokens: 9, messages: [USER, { role: "assistant", content }] }),
};

function comeBack(name: keyof typeof FORMS, reply: FormReply): Message | undefined {
  const answer = parseKeepingNumbers(JSON.stringify(FORMS[name].whole(reply, {}))) as Members;
  const history = parseKeepingNumbers(JSON.stringify(HISTORIES[name](answer)));
  return FORMS[name].parse(history).call.messages[1];
}

describe.each(["chat", "responses", "messages"] as const)("the form %s", (name) => {
  test.each(Object.entries(MESSAGES))("carries %s", (_, message) => {
    expect(JSON.stringify(comeBack(name, replyOf(message)))).toBe(JSON.stringify(message));
  });

  test("carries any message", () => {
    fc.assert(
      fc.property(anyMessage, (message) => {
        expect(JSON.stringify(comeBack(name, replyOf(message)))).toBe(JSON.stringify(message));
      }),
    );
  });

  test("carries a message whose usage and finish reason are unknown", () => {
    for (const message of Object.values(MESSAGES)) {
      const reply = replyOf(message, { usage: null, finish_reason: null });
      expect(comeBack(name, reply)).toEqual(message);
    }
  });

  test("has events that each end with an empty line, and are one event each", () => {
    for (const message of Object.values(MESSAGES)) {
      for (const text of FORMS[name].events(replyOf(message), {})) {
        expect(text).toMatch(/^(event: [\w.]+\n)?data: [^\n\r\u0085\u2028\u2029]+\n\n$/);
      }
    }
  });

  test("builds the same events again", () => {
    for (const message of Object.values(MESSAGES)) {
      const texts = () => [...FORMS[name].events(replyOf(message), {})].join("");
      expect(texts()).toBe(texts());
    }
  });
});

test("a chat stream that the platform reads itself is the same message", () => {
  const read = (message: Message, echo: JsonObject) => {
    const text = [...FORMS.chat.events(replyOf(message), echo)].join("");
    return readChatCompletion(readReplyText(text), 1);
  };
  for (const message of Object.values(MESSAGES)) {
    // Its parts come in a member of their own, which only an agent's request is read for.
    if (typeof message.content !== "string" || message.content === "") continue;
    const response = read(message, { include_usage: true });
    expect(JSON.stringify(response.message)).toBe(JSON.stringify(message));
    expect(response.usage).toEqual(replyOf(message).usage);
  }
});

test("an agent that changes what is carried is refused", () => {
  const message = MESSAGES["reasoning in vLLM's new member"];
  if (message === undefined) throw new Error("no such message");
  const whole = JSON.stringify(FORMS.messages.whole(replyOf(message), {})).replace("carried:{", "carried:{]");
  const history = HISTORIES.messages(JSON.parse(whole) as Members);
  expect(() => FORMS.messages.parse(history)).toThrow(
    "messages[1].content: was changed: send it back as it was received",
  );
});

test("a carried text that is nested without end is refused", () => {
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  const carried = `carried:{"content":[{"type":"x","x":${deep}}]}`;
  const history = HISTORIES.messages({ content: [{ type: "text", text: "a", carried }] });
  expect(() => FORMS.messages.parse(history)).toThrow("messages[1].content: was changed");
});

test("an agent that changes a call in its history is taken at its word", () => {
  const [content, id] = ["Now.", "c1"];
  const called = { name: "add", arguments: '{ "a" : 1 }' };
  const reply = replyOf({ role: "assistant", content, tool_calls: [{ id, type: "function", function: called }] });
  const whole = JSON.stringify(FORMS.messages.whole(reply, {})).replace('"input":{"a":1}', '"input":{"a":2}');
  const history = HISTORIES.messages(JSON.parse(whole) as Members);
  const [, message] = FORMS.messages.parse(history).call.messages;
  expect(message?.tool_calls?.[0]?.function.arguments).toBe('{"a": 2}');
});

test("signatures and encrypted reasoning of another provider are passed over", () => {
  const block = { type: "thinking", thinking: "Hm.", signature: "EqQB" };
  const redacted = { type: "redacted_thinking", data: "EqQB" };
  const content = [block, redacted, { type: "text", text: "7" }];
  const answer = { role: "assistant", content: "7", reasoning_content: "Hm." };
  expect(FORMS.messages.parse(HISTORIES.messages({ content })).call.messages[1]).toEqual(answer);
  const reasoning = { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: "gAAA" };
  const output = [reasoning, { role: "assistant", content: "7" }];
  expect(FORMS.responses.parse(HISTORIES.responses({ output })).call.messages[1]).toEqual(answer);
});

test("any other body is refused by name, or is a call", () => {
  const word = fc.constantFrom(
    "user",
    "assistant",
    "tool",
    "text",
    "tool_use",
    "tool_result",
    "function_call",
    "reasoning",
  );
  const part = fc.dictionary(
    fc.constantFrom("type", "text", "id", "name", "input", "content", "source"),
    fc.jsonValue(),
  );
  const fields = fc.record({
    role: word,
    type: word,
    content: fc.oneof(fc.jsonValue(), fc.array(part)),
    call_id: word,
  });
  const list = fc.array(fc.oneof(fields, fc.jsonValue()), { maxLength: 3 });
  const body = fc.record({ model: word, max_tokens: fc.nat(), messages: list, input: list, tools: list });
  fc.assert(
    fc.property(fc.oneof(body, fc.jsonValue()), fc.constantFrom(...Object.values(FORMS)), (given, form) => {
      try {
        expect(Array.isArray(form.parse(given).call.messages)).toBe(true);
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(FormError);
      }
    }),
    { numRuns: 500 },
  );
});
