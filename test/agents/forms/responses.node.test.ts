import { expect, test } from "vitest";
import { responses } from "../../../src/agents/forms/responses.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { replyOf } from "./replies.ts";
import { refusalOf } from "./requests.ts";

const REQUEST = { model: "m", input: "Add." };

const parse = (fields: object) => responses.parse({ ...REQUEST, ...fields });
const messagesOf = (...input: object[]) => parse({ input }).call.messages;
const refusal = (fields: object) => refusalOf(responses, { ...REQUEST, ...fields });

const called = (call_id: string) => ({ type: "function_call", call_id, name: "add", arguments: "{}" });
const output = (call_id: string, text: unknown = "7") => ({ type: "function_call_output", call_id, output: text });
const call = (id: string) => ({ id, type: "function", function: { name: "add", arguments: "{}" } });

test("instructions and a text are a system and a user message", () => {
  expect(parse({ instructions: "Be brief." }).call.messages).toEqual([
    { role: "system", content: "Be brief." },
    { role: "user", content: "Add." },
  ]);
});

test("fields become those of chat completions", () => {
  const schema = { type: "object" };
  const { call: asked, stream } = parse({
    ...{ max_output_tokens: 9, temperature: 0, reasoning: { effort: "low", summary: "auto" }, stream: true },
    ...{ text: { format: { type: "json_schema", name: "n", schema, strict: true }, verbosity: "low" } },
    ...{ tools: [{ type: "function", name: "add", parameters: schema, strict: false }], tool_choice: "required" },
    ...{ parallel_tool_calls: false, top_k: 3, min_p: 0.1, guided_regex: "a+", background: false },
    ...{ store: true, include: ["reasoning.encrypted_content"], metadata: {}, truncation: "auto", top_logprobs: 2 },
    ...{ client_metadata: { session: "s" }, background_options: {} },
  });
  expect(asked.sampling).toEqual({
    ...{ temperature: 0, max_completion_tokens: 9, reasoning_effort: "low", parallel_tool_calls: false },
    ...{ top_k: 3, min_p: 0.1 },
    extra_body: {
      guided_regex: "a+",
      tool_choice: "required",
      response_format: { type: "json_schema", json_schema: { name: "n", strict: true, schema } },
      verbosity: "low",
    },
  });
  expect(asked.tools).toEqual([
    { type: "function", function: { name: "add", description: "", parameters: schema, strict: false } },
  ]);
  expect(stream).toBe(true);
});

test("a choice of tools is that of chat completions, and is left out without tools", () => {
  const tools = [{ type: "function", name: "add" }];
  const choiceOf = (fields: object) => parse(fields).call.sampling.extra_body?.["tool_choice"];
  const add = { type: "function", function: { name: "add" } };
  expect(choiceOf({ tools, tool_choice: { type: "function", name: "add" } })).toEqual(add);
  expect(choiceOf({ tools, tool_choice: { type: "allowed_tools", mode: "auto", tools } })).toEqual({
    type: "allowed_tools",
    allowed_tools: { mode: "auto", tools: [add] },
  });
  expect(parse({ tool_choice: "auto", parallel_tool_calls: true }).call.sampling).toEqual({});
});

test("reasoning, a text and calls of the assistant are one message", () => {
  const reasoning = { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Hm." }] };
  const said = { type: "message", role: "assistant", content: [{ type: "output_text", text: "So." }] };
  const user = { role: "user", content: "Add." };
  expect(messagesOf(user, reasoning, said, called("c1"), called("c2"), output("c1"), output("c2"), said)).toEqual([
    user,
    { role: "assistant", content: "So.", reasoning_content: "Hm.", tool_calls: [call("c1"), call("c2")] },
    { role: "tool", content: "7", tool_call_id: "c1" },
    { role: "tool", content: "7", tool_call_id: "c2" },
    { role: "assistant", content: "So." },
  ]);
});

test("two answers without an item between them stay two messages, unless calls wait for their outputs", () => {
  const said = (content: string) => ({ role: "assistant", content });
  const reasoning = (text: string) => ({ type: "reasoning", summary: [{ type: "summary_text", text }] });
  expect(messagesOf(said("a"), reasoning("Hm."), said("b"))).toEqual([
    { role: "assistant", content: "a" },
    { role: "assistant", content: "b", reasoning_content: "Hm." },
  ]);
  expect(messagesOf(reasoning("A."), called("c1"), reasoning("B."), called("c2"), said("so"), output("c1"))).toEqual([
    { role: "assistant", content: "so", reasoning_content: "A.\n\nB.", tool_calls: [call("c1"), call("c2")] },
    { role: "tool", content: "7", tool_call_id: "c1" },
  ]);
});

test("texts, images and files are parts of a user's message or of an output", () => {
  const parts = [
    { type: "input_text", text: "a" },
    { type: "input_image", image_url: "data:image/png;base64,AA==", detail: "high" },
    { type: "input_file", file_data: "data:application/pdf;base64,AA==", filename: "a.pdf" },
  ];
  const content = [
    { type: "text", text: "a" },
    { type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "high" } },
    { type: "file", file: { file_data: "data:application/pdf;base64,AA==", filename: "a.pdf" } },
  ];
  expect(messagesOf({ role: "user", content: parts }, output("c1", parts))).toEqual([
    { role: "user", content },
    { role: "tool", content, tool_call_id: "c1" },
  ]);
  expect(messagesOf({ role: "developer", content: [parts[0]] })).toEqual([{ role: "system", content: "a" }]);
});

test("what is not supported is refused with what to do", () => {
  for (const field of ["previous_response_id", "conversation"]) {
    expect(refusal({ [field]: "x" })).toBe(`${field}: is not supported: send the whole input with each request`);
  }
  expect(refusal({ background: true })).toMatch(/^background: is not supported: wait/);
  expect(refusal({ prompt: { id: "p" } })).toMatch(/^prompt: is not supported: send its text/);
  expect(refusal({ tools: [{ type: "web_search" }] })).toBe(
    'tools[0].type: "web_search" is not supported: only tools of the type function are',
  );
  expect(refusal({ tool_choice: { type: "mcp" } })).toMatch(/^tool_choice\.type: "mcp" is not supported/);
  const [reference, custom] = [{ type: "item_reference", id: "i" }, { type: "custom_tool_call" }];
  expect(refusal({ input: [reference] })).toBe("input[0].type: item_reference is not supported: send the item itself");
  expect(refusal({ input: [custom] })).toBe('input[0].type: "custom_tool_call" is not supported');
  const image = { type: "input_image", file_id: "file_1" };
  expect(refusal({ input: [{ role: "user", content: [image] }] })).toBe(
    "input[0].content[0].image_url: is required: files are not stored here",
  );
});

test("each wrong field is named", () => {
  expect(refusalOf(responses, { model: "m" })).toBe("input: is required");
  expect(refusal({ input: [{ content: "a" }] })).toBe("input[0].type: is required");
  expect(refusal({ input: [{ role: "robot", content: "a" }] })).toMatch(/^input\[0\]\.role: /);
  expect(refusal({ input: [{ ...called("c1"), arguments: {} }] })).toMatch(/^input\[0\]\.arguments: /);
  expect(refusal({ input: [output("c1", { a: 1 })] })).toMatch(/^input\[0\]\.output: /);
  expect(refusal({ text: { format: { type: "grammar" } } })).toMatch(/^text\.format/);
  expect(refusal({ max_output_tokens: 0 })).toMatch(/^max_output_tokens: /);
  const content = Array.from({ length: LIMITS.callParts + 1 }, () => ({ type: "input_text", text: "a" }));
  expect(refusal({ input: [{ role: "user", content }] })).toMatch(
    /^input\[0\]\.content: has \d+ items, the maximum is /,
  );
});

test("a response repeats the fields of its request", () => {
  const tools = [{ type: "function", name: "add", parameters: null, strict: null }];
  const { echo } = parse({ tools, temperature: 0.5, instructions: "Be brief.", metadata: { a: "b" }, store: true });
  const response = responses.whole(replyOf({ role: "assistant", content: "7" }), echo);
  expect(response).toMatchObject({ id: "resp_a1_2", object: "response", status: "completed", output_text: "7" });
  expect(response).toMatchObject({ tools, temperature: 0.5, instructions: "Be brief.", metadata: { a: "b" } });
  expect(response).toMatchObject({ store: false, tool_choice: "auto", parallel_tool_calls: true, error: null });
});
