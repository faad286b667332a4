/** Streams as the official SDK reads them: joined, they equal the reply without streaming. */
import { request } from "node:http";
import { expect, test } from "vitest";
import { renderChat } from "../chat-template.ts";
import { END, encodeText } from "../tokenizer.ts";
import { randomWeights } from "./scripted-weights.ts";
import { MODEL, type Served, serve, serveReply } from "./served-policy.ts";

const HELLO = [{ role: "user" as const, content: "Reverse: abc" }];
const TOOLS = [{ type: "function" as const, function: { name: "add", parameters: {} } }];

interface Chunk {
  readonly prompt_token_ids?: number[];
  readonly choices: {
    index: number;
    delta: { role?: string; content?: string; tool_calls?: unknown[] };
    text?: string;
    token_ids?: number[];
    logprobs: { content: unknown[] } | null;
    finish_reason: string | null;
    stop_reason?: string | null;
  }[];
  readonly usage?: object;
}

/** The events of a raw stream; the last one must be the end marker. */
async function chunks({ post }: Served, path: string, body: object): Promise<Chunk[]> {
  const response = await post(path, { ...body, stream: true });
  expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
  const events = (await response.text()).split("\n\n").filter(Boolean);
  expect(events.at(-1)).toBe("data: [DONE]");
  return events.slice(0, -1).map((event) => JSON.parse(event.replace(/^data: /, "")));
}

test("a chat stream is role, tokens, end and usage, with the prompt's ids in the first chunk only", async () => {
  const served = await serveReply(HELLO, "cba");
  const all = await chunks(served, "/v1/chat/completions", {
    messages: HELLO,
    return_token_ids: true,
    logprobs: true,
    stream_options: { include_usage: true },
  });
  const prompt = renderChat(HELLO, { addGenerationPrompt: true });
  expect(all.map((chunk) => chunk.prompt_token_ids)).toEqual([prompt, ...Array(6).fill(undefined)]);
  expect(all.flatMap(({ choices }) => choices.map(({ delta }) => delta))).toEqual([
    { role: "assistant", content: "" },
    { content: "c" },
    { content: "b" },
    { content: "a" },
    {},
    {},
  ]);
  const ids = all.flatMap(({ choices }) => choices.flatMap(({ token_ids = [] }) => token_ids));
  expect(ids).toEqual([...encodeText("cba"), END]);
  const logprobs = all.flatMap(({ choices }) => choices.flatMap((it) => it.logprobs?.content ?? []));
  expect(logprobs).toHaveLength(ids.length);
  expect(all.at(-2)?.choices[0]).toMatchObject({ finish_reason: "stop", stop_reason: null });
  expect(all.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 4 } });
});

test("the SDK's stream helper assembles content and tool calls", async () => {
  const call = '<tool_call>{"name": "add", "arguments": {"a": 3, "b": 4}}</tool_call>';
  const { client } = await serveReply(HELLO, `I add < ${call}${call}`);
  const stream = client.chat.completions.stream({ model: MODEL, messages: HELLO, tools: TOOLS });
  const pieces: string[] = [];
  stream.on("content", (piece) => pieces.push(piece));
  const [choice] = (await stream.finalChatCompletion()).choices;
  expect(pieces.join("")).toBe("I add < ");
  expect(choice?.finish_reason).toBe("tool_calls");
  expect(choice?.message.content).toBe("I add < ");
  expect(choice?.message.tool_calls?.map((it) => it.type === "function" && it.function)).toEqual(
    Array(2).fill(expect.objectContaining({ name: "add", arguments: '{"a": 3, "b": 4}' })),
  );
});

test("text that begins like a tool call but is none is content after all", async () => {
  const text = "<tool_call>{oops}</tool_call> and <tool";
  const served = await serveReply(HELLO, text);
  const all = await chunks(served, "/v1/chat/completions", { messages: HELLO, tools: TOOLS });
  const deltas = all.flatMap(({ choices }) => choices.map(({ delta }) => delta));
  expect(deltas.map(({ content = "" }) => content).join("")).toBe(text);
  expect(deltas.some(({ tool_calls }) => tool_calls !== undefined)).toBe(false);
});

test("no chunk contains any part of a stop string, wherever its tokens end", async () => {
  const served = await serveReply(HELLO, "abcabcd and more");
  const body = { messages: HELLO, stop: ["abcd"] };
  const all = await chunks(served, "/v1/chat/completions", body);
  const contents = all.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? ""));
  expect(contents.join("")).toBe("abc");
  expect(contents.every((content) => "abc".includes(content))).toBe(true);
  expect(all.at(-1)?.choices[0]).toMatchObject({ finish_reason: "stop", stop_reason: "abcd" });
});

test("a character of several bytes comes complete in one chunk", async () => {
  const served = await serveReply(HELLO, "né🙂");
  const all = await chunks(served, "/v1/chat/completions", { messages: HELLO });
  const contents = all.flatMap(({ choices }) => choices.map(({ delta }) => delta.content));
  expect(contents.filter(Boolean)).toEqual(["n", "é", "🙂"]);
});

test("the choices of one stream are told apart, and equal the same request without streaming", async () => {
  const served = await serve(randomWeights());
  const body = { messages: HELLO, n: 3, seed: 5, max_tokens: 10 };
  const all = await chunks(served, "/v1/chat/completions", body);
  const streamed = [0, 1, 2].map((index) =>
    all
      .flatMap(({ choices }) => choices.filter((choice) => choice.index === index))
      .map(({ delta }) => delta.content ?? "")
      .join(""),
  );
  const whole = await served.client.chat.completions.create({
    model: MODEL,
    messages: HELLO,
    n: 3,
    seed: 5,
    max_tokens: 10,
  });
  expect(streamed).toEqual(whole.choices.map(({ message }) => message.content));
});

test("plain completions stream their texts, with the SDK and without", async () => {
  const served = await serve(randomWeights());
  const asked = { model: MODEL, prompt: ["abc", "de"], seed: 3 };
  const stream = await served.client.completions.create({ ...asked, stream: true });
  const texts = ["", ""];
  for await (const { choices } of stream) {
    for (const { index, text } of choices) texts[index] += text;
  }
  const whole = await served.client.completions.create(asked);
  expect(texts).toEqual(whole.choices.map(({ text }) => text));
  const all = await chunks(served, "/v1/completions", {
    ...asked,
    return_token_ids: true,
    stream_options: { include_usage: true },
  });
  const prompts = all.flatMap(({ choices }) =>
    choices.flatMap((choice) => ("prompt_token_ids" in choice ? [choice.prompt_token_ids] : [])),
  );
  expect(prompts).toEqual([encodeText("abc"), encodeText("de")]);
  expect(all.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 5 } });
});

test.each([false, true])("a client that disconnects ends its request, stream: %s", async (stream) => {
  const served = await serve(randomWeights(), 2);
  const { engine, url } = served;
  const body = JSON.stringify({
    messages: HELLO,
    max_tokens: 100,
    ignore_eos: true,
    n: 8,
    stream,
  });
  const headers = { "content-type": "application/json" };
  const sent = request(`${url}/v1/chat/completions`, { method: "POST", headers });
  const hungUp = new Promise((resolve) => sent.once("error", resolve).once("close", resolve));
  sent.end(body);
  await expect.poll(() => engine.stats().running, { interval: 1 }).toBe(2);
  sent.destroy();
  await hungUp;
  await expect.poll(() => engine.stats().running, { interval: 1 }).toBe(0);
  expect(engine.stats().generationTokens).toBeLessThan(800);
});
