import { expect, test } from "vitest";
import { messages } from "../../../src/agents/forms/messages.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { refusalOf } from "./requests.ts";

const USER = { role: "user", content: "Add." };
const REQUEST = { model: "m", max_tokens: 9, messages: [USER] };

const parse = (fields: object) => messages.parse({ ...REQUEST, ...fields });
const messagesOf = (...given: object[]) => parse({ messages: given }).call.messages;
const refusal = (fields: object) => refusalOf(messages, { ...REQUEST, ...fields });

const text = (said: string) => ({ type: "text", text: said, cache_control: { type: "ephemeral" } });
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } };
const imagePart = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };

test("system is the first message, as one text or several parts", () => {
  expect(parse({ system: "Be brief." }).call.messages[0]).toEqual({ role: "system", content: "Be brief." });
  expect(parse({ system: [text("a")] }).call.messages[0]).toEqual({ role: "system", content: "a" });
  const parts = [
    { type: "text", text: "a" },
    { type: "text", text: "b" },
  ];
  expect(parse({ system: [text("a"), text("b")] }).call.messages[0]).toEqual({ role: "system", content: parts });
  expect(parse({ system: [] }).call.messages).toEqual([USER]);
});

test("the line for billing that Claude Code sends is not part of the instructions", () => {
  const billing = (hash: string) => `x-anthropic-billing-header: cc_version=2.1.177; cch=${hash};`;
  const systemOf = (system: unknown) => parse({ system }).call.messages[0];
  expect(systemOf([text(billing("36ee5")), text("a")])).toEqual({ role: "system", content: "a" });
  expect(systemOf(`${billing("0aaa9")}\na`)).toEqual({ role: "system", content: "a" });
  expect(systemOf([text(billing("0aaa9"))])).toEqual(USER);
});

test("fields become those of chat completions", () => {
  const input_schema = { type: "object" };
  const { call } = parse({
    ...{ temperature: 1, top_p: 0.9, top_k: 5, stop_sequences: ["x"], seed: 3, min_p: 0, guided_regex: "a+" },
    ...{ tools: [{ name: "add", input_schema, cache_control: {}, strict: true }] },
    ...{ tool_choice: { type: "any", disable_parallel_tool_use: true } },
    ...{ output_config: { effort: "high", format: { type: "json_schema", schema: input_schema } } },
    ...{ thinking: { type: "enabled", budget_tokens: 1024 }, metadata: { user_id: "u" }, mcp_servers: [] },
    ...{ context_management: { edits: [] }, service_tier: "auto" },
  });
  expect(call.sampling).toEqual({
    ...{ temperature: 1, top_p: 0.9, top_k: 5, min_p: 0, max_completion_tokens: 9, stop: ["x"], seed: 3 },
    ...{ parallel_tool_calls: false, reasoning_effort: "high" },
    extra_body: {
      guided_regex: "a+",
      tool_choice: "required",
      response_format: {
        type: "json_schema",
        json_schema: { name: "output", schema: input_schema, strict: true },
      },
    },
  });
  const called = { name: "add", description: "", parameters: input_schema, strict: true };
  expect(call.tools).toEqual([{ type: "function", function: called }]);
});

test("a choice of tools is that of chat completions, and is left out without tools", () => {
  const tools = [{ name: "add", input_schema: {} }];
  const choiceOf = (fields: object) => parse(fields).call.sampling.extra_body?.["tool_choice"];
  expect(choiceOf({ tools, tool_choice: { type: "auto" } })).toBe("auto");
  expect(choiceOf({ tools, tool_choice: { type: "none" } })).toBe("none");
  const add = { type: "function", function: { name: "add" } };
  expect(choiceOf({ tools, tool_choice: { type: "tool", name: "add" } })).toEqual(add);
  expect(choiceOf({ tool_choice: { type: "auto" } })).toBe(undefined);
});

test("results of tools are messages of their own, before what the user says", () => {
  const result = { type: "tool_result", tool_use_id: "t1", content: [text("7"), image] };
  const failed = (id: string, content: unknown) => ({ type: "tool_result", tool_use_id: id, is_error: true, content });
  const content = [
    ...[result, failed("t2", "no file"), failed("t3", "error: no file"), failed("t4", [image])],
    ...[{ type: "tool_result", tool_use_id: "t5" }, text("Go on."), image],
  ];
  expect(messagesOf({ role: "user", content })).toEqual([
    { role: "tool", content: [{ type: "text", text: "7" }, imagePart], tool_call_id: "t1" },
    { role: "tool", content: "Error: no file", tool_call_id: "t2" },
    { role: "tool", content: "error: no file", tool_call_id: "t3" },
    { role: "tool", content: [{ type: "text", text: "Error:" }, imagePart], tool_call_id: "t4" },
    { role: "tool", content: "", tool_call_id: "t5" },
    { role: "user", content: [{ type: "text", text: "Go on." }, imagePart] },
  ]);
});

test("blocks of the assistant are one message, with arguments as JSON that has spaces", () => {
  const use = { type: "tool_use", id: "t1", name: "add", input: { a: [1, 2], b: { c: "é" } } };
  const blocks = [{ type: "thinking", thinking: "Hm.", signature: "s" }, text("a"), text("b"), use];
  const called = { name: "add", arguments: '{"a": [1, 2], "b": {"c": "é"}}' };
  expect(messagesOf({ role: "assistant", content: blocks }, { role: "assistant", content: "c" })).toEqual([
    {
      ...{ role: "assistant", content: "ab", reasoning_content: "Hm." },
      tool_calls: [{ id: "t1", type: "function", function: called }],
    },
    { role: "assistant", content: "c" },
  ]);
});

test("images by address and documents with a text are parts", () => {
  const url = "https://a.example/i.png";
  const blocks = [
    { type: "image", source: { type: "url", url } },
    { type: "document", source: { type: "text", media_type: "text/plain", data: "d" } },
  ];
  expect(messagesOf({ role: "user", content: blocks })).toEqual([
    {
      role: "user",
      content: [
        { type: "image_url", image_url: { url } },
        { type: "text", text: "d" },
      ],
    },
  ]);
});

test("what is not supported is refused by its name", () => {
  expect(refusal({ tools: [{ type: "bash_20250124", name: "bash" }] })).toBe(
    'tools[0].type: "bash_20250124" ("bash") is not supported: only tools with an input_schema are',
  );
  expect(refusal({ container: "c" })).toBe("container: is not supported: the platform has no containers");
  expect(refusal({ mcp_servers: [{}] })).toMatch(/^mcp_servers: is not supported/);
  expect(refusal({ thread: { type: "create" } })).toMatch(/^thread: is not supported/);
  expect(refusal({ compaction: { type: "summarize" } })).toMatch(/^compaction: is not supported/);
  const user = (block: unknown) => ({ messages: [{ role: "user", content: [block] }] });
  expect(refusal(user({ type: "search_result" }))).toBe(
    'messages[0].content[0].type: "search_result" is not supported',
  );
  expect(refusal(user({ type: "image", source: { type: "file", file_id: "f" } }))).toMatch(
    /^messages\[0\]\.content\[0\]\.source/,
  );
  const used = { role: "assistant", content: [{ type: "server_tool_use", id: "s", name: "web_search", input: {} }] };
  expect(refusal({ messages: [used] })).toBe('messages[0].content[0].type: "server_tool_use" is not supported');
});

test("each wrong field is named", () => {
  expect(refusalOf(messages, { model: "m", messages: [USER] })).toBe("max_tokens: is required");
  expect(refusal({ max_tokens: 0 })).toMatch(/^max_tokens: /);
  expect(refusal({ system: 1 })).toMatch(/^system: /);
  expect(refusal({ system: [image] })).toBe("system[0].text: is required");
  expect(refusal({ tools: [{ name: "add" }] })).toBe("tools[0].input_schema: is required");
  expect(refusal({ tool_choice: { type: "tool" }, tools: [] })).toMatch(/^tool_choice\.name: is required/);
  expect(refusal({ messages: [{ role: "tool", content: "a" }] })).toMatch(/^messages\[0\]\.role: unknown role "tool"/);
  const use = { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "add", input: "{}" }] };
  expect(refusal({ messages: [use] })).toMatch(/^messages\[0\]\.content\[0\]\.input: /);
  const content = Array.from({ length: LIMITS.callParts + 1 }, () => text("a"));
  expect(refusal({ messages: [{ role: "user", content }] })).toMatch(
    /^messages\[0\]\.content: has \d+ items, the maximum is /,
  );
});

test("errors have Anthropic's types", () => {
  const typeOf = (status: number) => messages.refusal({ status, code: "c", message: "m", param: null })["error"];
  expect(typeOf(400)).toEqual({ type: "invalid_request_error", message: "m", code: "c", param: null });
  expect([401, 403, 404, 409, 413, 429, 500, 503].map((status) => Reflect.get(Object(typeOf(status)), "type"))).toEqual(
    [
      ...["authentication_error", "permission_error", "not_found_error", "invalid_request_error", "request_too_large"],
      ...["rate_limit_error", "api_error", "overloaded_error"],
    ],
  );
});
