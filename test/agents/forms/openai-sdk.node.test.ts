/** OpenAI's SDK as an agent uses it: what it returns is sent back as the history of the next request. */
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Message } from "../../../src/contract/messages.ts";
import { MESSAGES, replyOf } from "./replies.ts";
import { type ModelAddress, serveForms } from "./serve-forms.ts";

type ChatMessages = OpenAI.Chat.Completions.ChatCompletionMessageParam[];
type Input = OpenAI.Responses.ResponseInputItem[];

let address: ModelAddress;
let client: OpenAI;

beforeAll(async () => {
  address = await serveForms();
  client = new OpenAI({ baseURL: `${address.url}/v1`, apiKey: "k", maxRetries: 0 });
});
afterAll(() => address.stop());

const USER = { role: "user", content: "Add." } as const;
const add = { name: "add", description: "adds", parameters: { type: "object", properties: {} }, strict: false };
const CHAT_TOOLS: OpenAI.Chat.Completions.ChatCompletionTool[] = [{ type: "function", function: add }];
const CHAT = { model: "m", tools: CHAT_TOOLS };
const TOOLS: OpenAI.Responses.Tool[] = [{ type: "function", ...add }];
const RESPONSES = { model: "m", tools: TOOLS };

const said = (text: string) => ({ role: "tool", content: text }) as const;
const results = ({ tool_calls = [] }: Message) => tool_calls.map(({ id }) => ({ ...said("7"), tool_call_id: id }));

/** The history as the platform reads it must have the message in the middle, unchanged. */
function expectHistory(message: Message): void {
  const messages = address.requests.at(-1)?.call.messages ?? [];
  expect(JSON.stringify(messages[1])).toBe(JSON.stringify(message));
  expect(messages.slice(2)).toEqual(results(message));
}

describe.each(Object.entries(MESSAGES))("%s", (_, message) => {
  test("comes back from a chat completion", async () => {
    address.answer(replyOf(message));
    const { choices, usage } = await client.chat.completions.create({ ...CHAT, messages: [USER] });
    expect(usage).toMatchObject({
      prompt_tokens: 9,
      completion_tokens: 4,
      prompt_tokens_details: { cached_tokens: 2 },
    });
    await client.chat.completions.create({ ...CHAT, messages: chatHistory(choices[0]?.message, message) });
    expectHistory(message);
  });

  test("comes back from a chat stream", async () => {
    address.answer(replyOf(message));
    const asked = { ...CHAT, messages: [USER], stream_options: { include_usage: true } };
    const completion = await client.chat.completions.stream(asked).finalChatCompletion();
    expect(completion.usage?.total_tokens).toBe(13);
    expect(completion.choices[0]?.finish_reason).toBe(message.tool_calls === undefined ? "stop" : "tool_calls");
    const messages = chatHistory(completion.choices[0]?.message, message);
    await client.chat.completions.create({ ...CHAT, messages });
    expectHistory(message);
  });

  test("comes back from a response", async () => {
    address.answer(replyOf(message));
    const { output, usage } = await client.responses.create({ ...RESPONSES, input: [USER] });
    expect(usage).toMatchObject({ input_tokens: 9, input_tokens_details: { cached_tokens: 2 }, output_tokens: 4 });
    await client.responses.create({ ...RESPONSES, input: inputHistory(output, message) });
    expectHistory(message);
  });

  test("comes back from a stream of a response", async () => {
    address.answer(replyOf(message));
    const { output, status } = await client.responses.stream({ ...RESPONSES, input: [USER] }).finalResponse();
    expect(status).toBe("completed");
    await client.responses.create({ ...RESPONSES, input: inputHistory(output, message) });
    expectHistory(message);
  });

  test("comes back from the items that a stream of a response has finished", async () => {
    address.answer(replyOf(message));
    const output: OpenAI.Responses.ResponseOutputItem[] = [];
    for await (const event of await client.responses.create({ ...RESPONSES, input: [USER], stream: true })) {
      if (event.type === "response.output_item.done") output.push(event.item);
    }
    await client.responses.create({ ...RESPONSES, input: inputHistory(output, message) });
    expectHistory(message);
  });
});

function chatHistory(
  answer: OpenAI.Chat.Completions.ChatCompletionMessage | undefined,
  message: Message,
): ChatMessages {
  if (answer === undefined) throw new Error("the completion has no message");
  return [USER, answer, ...results(message)];
}

function inputHistory(output: OpenAI.Responses.ResponseOutputItem[], { tool_calls = [] }: Message): Input {
  const outputs = tool_calls.map(
    ({ id: call_id }) => ({ type: "function_call_output", call_id, output: "7" }) as const,
  );
  // Items that only OpenAI's own tools make cannot be sent back; there are none.
  return [USER, ...(output as Input), ...outputs];
}

describe("the helpers of the SDK", () => {
  const message: Message = {
    role: "assistant",
    content: "It is 7.",
    reasoning_content: "3 + 4",
    tool_calls: [{ id: "c1", type: "function", function: { name: "add", arguments: '{"a": 1}' } }],
  };

  test("see the text of a response and its events in order", async () => {
    address.answer(replyOf(message));
    const seen: string[] = [];
    const numbers: number[] = [];
    const stream = client.responses.stream({ ...RESPONSES, input: "Add." });
    for await (const event of stream) {
      seen.push(event.type.replace("response.", ""));
      numbers.push(event.sequence_number);
    }
    expect((await stream.finalResponse()).output_text).toBe("It is 7.");
    expect(numbers).toEqual(numbers.map((_, at) => at));
    const item = (...events: string[]) => ["output_item.added", ...events, "output_item.done"];
    const part = (name: string) => ["content_part.added", `${name}.delta`, `${name}.done`, "content_part.done"];
    expect(seen).toEqual([
      ...["created", "in_progress", ...item(...part("reasoning_text")), ...item(...part("output_text"))],
      ...[...item("function_call_arguments.delta", "function_call_arguments.done"), "completed"],
    ]);
  });

  test("see that an answer was cut at its token limit", async () => {
    address.answer(replyOf({ role: "assistant", content: "It is" }, { finish_reason: "length" }));
    const asked = { ...RESPONSES, input: "Add.", max_output_tokens: 2 };
    const response = await client.responses.stream(asked).finalResponse();
    expect(response).toMatchObject({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
    expect(response.output[0]).toMatchObject({ type: "message", status: "incomplete" });
    expect(address.requests.at(-1)?.call.sampling).toEqual({ max_completion_tokens: 2 });
    const { choices } = await client.chat.completions.create({ ...CHAT, messages: [USER] });
    expect(choices[0]?.finish_reason).toBe("length");
  });

  test("throw the platform's error of a request, whole or in a stream", async () => {
    address.answer({ status: 429, code: "rate_limited", message: "too many calls", param: null });
    const asked = { ...CHAT, messages: [USER] };
    const limited = { status: 429, code: "rate_limited", type: "rate_limit_error" };
    await expect(client.chat.completions.create(asked)).rejects.toMatchObject(limited);
    await expect(client.responses.create({ ...RESPONSES, input: "Add." })).rejects.toMatchObject(limited);
    const later = { code: "rate_limited", message: expect.stringContaining("too many calls") };
    await expect(client.chat.completions.stream(asked).finalChatCompletion()).rejects.toMatchObject(later);
    await expect(client.responses.stream({ ...RESPONSES, input: "Add." }).finalResponse()).rejects.toMatchObject(later);
  });

  test("show which field of a request is refused", async () => {
    const asked = { ...RESPONSES, input: "Add.", previous_response_id: "resp_1" };
    await expect(client.responses.create(asked)).rejects.toMatchObject({
      status: 400,
      param: "previous_response_id",
      message: expect.stringContaining("send the whole input"),
    });
  });
});
