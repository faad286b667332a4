import { expect, test } from "vitest";
import type { ContentPart, Messages } from "../../../src/contract/messages.ts";
import { sizeOfCall, sizeOfEmbeddings } from "../../../src/kernel/clients/call-size.ts";

const SYSTEM = { role: "system", content: "Answer briefly." } as const;

function promptTokens(messages: Messages, more: Partial<Parameters<typeof sizeOfCall>[0]> = {}): number {
  return sizeOfCall({ model: "m", messages, tools: [], sampling: { max_tokens: 7 }, ...more }).prompt_tokens;
}

function withPart(part: ContentPart, model = "m"): number {
  const bare = promptTokens([SYSTEM, { role: "user", content: [] }], { model });
  return promptTokens([SYSTEM, { role: "user", content: [part] }], { model }) - bare;
}

test("a prompt has at most as many tokens as its body has bytes in UTF-8, plus 256 for a chat template", () => {
  const messages: Messages = [SYSTEM, { role: "user", content: "Wie heißt 東京?\n" }];
  const body = { max_tokens: 7, model: "m", messages };
  expect(promptTokens(messages)).toBe(Buffer.byteLength(JSON.stringify(body)) + 256);
});

test("tools count the bytes of their schemas, plus the instructions that a provider adds for them", () => {
  const messages: Messages = [SYSTEM, { role: "user", content: "12 times 3?" }];
  const parameters = { type: "object", properties: { a: { type: "number" } } };
  const tools = [{ type: "function" as const, function: { name: "multiply", description: "Multiplies.", parameters } }];
  const body = { tools, max_tokens: 7, model: "m", messages };
  expect(promptTokens(messages, { tools })).toBe(Buffer.byteLength(JSON.stringify(body)) + 1024);
});

test("for a prompt without a system message, the text of the chat template is counted", () => {
  const messages: Messages = [{ role: "user", content: "Hello" }];
  expect(promptTokens(messages)).toBe(
    Buffer.byteLength(JSON.stringify({ max_tokens: 7, model: "m", messages })) + 1024,
  );
});

test("the data of a picture is not counted as text: it counts the most that providers document", () => {
  const picture = (url: string) => ({ type: "image_url", image_url: { url, detail: "high" } });
  const inline = `data:image/png;base64,${"A".repeat(1_000_000)}`;
  const named = "https://pictures.example/1.png";
  const written = '{"type":"image_url","image_url":{"url":"","detail":"high"}}'.length;
  expect(withPart(picture(inline))).toBe(49_152 + written);
  expect(withPart(picture(inline), "Qwen/Qwen3-VL-8B-Instruct")).toBe(16_384 + written);
  expect(withPart(picture(named), "anthropic/claude-sonnet-5")).toBe(16_384 + written + named.length);
});

test("a sound is counted by its length: a token for 16 characters of MP3 or WAV, or for each of another format", () => {
  const sound = (format: string) => ({ type: "input_audio", input_audio: { data: "A".repeat(16_000), format } });
  const written = '{"type":"input_audio","input_audio":{"data":"","format":"mp3"}}'.length;
  expect(withPart(sound("mp3"))).toBe(2048 + 1000 + written);
  expect(withPart(sound("aac"))).toBe(2048 + 16_000 + written);
});

test("a part whose size only the endpoint can determine has no bound", () => {
  const size = (type: string) => {
    const messages: Messages = [{ role: "user", content: [{ type, [type]: {} }] }];
    return sizeOfCall({ model: "m", messages, tools: [], sampling: { max_tokens: 7 } });
  };
  expect(size("image_url")).toMatchObject({ most_tokens: 7 });
  expect(size("file")).toMatchObject({ most_tokens: null });
  expect(size("video_url")).toMatchObject({ most_tokens: null });
});

test("texts to be embedded are counted by their bytes", () => {
  expect(sizeOfEmbeddings({ texts: ["ß", "b"] })).toEqual({ prompt_tokens: 10 + 256 + 4, most_tokens: 0 });
});

test("a call without max_tokens has no bound", () => {
  const asked = { model: "m", messages: [SYSTEM], tools: [] };
  expect(sizeOfCall({ ...asked, sampling: {} }).most_tokens).toBeNull();
  expect(sizeOfCall({ ...asked, sampling: { max_tokens: null } }).most_tokens).toBeNull();
});

const most = (extra_body: Record<string, unknown>) =>
  sizeOfCall({ model: "m", messages: [], tools: [], sampling: { max_tokens: 100, extra_body } }).most_tokens;

test.each([
  { max_tokens: -1 },
  { max_tokens: 0 },
  { max_completion_tokens: "100000" },
  { max_tokens: 1e308, n: 10 },
  { max_tokens: 2 ** 52, n: 4 },
  { n: "50" },
  { n: 1.5 },
  { max_tokens: null },
])("a call with a limit that engines may read in different ways has no bound: %o", (extra_body) => {
  expect(most(extra_body)).toBeNull();
});

test("a reply counts the largest limit of the call, times the number of replies it requests", () => {
  expect(most({ n: null, max_completion_tokens: null })).toBe(100);
  expect(most({ max_completion_tokens: 200, n: 2, best_of: 3 })).toBe(600);
});
