import { expect, test } from "vitest";
import { contentOf, type McpResult } from "../../../src/core/environments/mcp-result.ts";

const text = (...texts: readonly string[]) => texts.map((one) => ({ type: "text", text: one }));
const pixel = { type: "image", mimeType: "image/png", data: "AAAA" };
const shown = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };

test.each<[string, McpResult, string]>([
  ["texts", { content: text("one", "two") }, "one\ntwo"],
  ["structure in addition to a text", { content: text("5 dollars"), structuredContent: { price: 5 } }, "5 dollars"],
  ["structure alone", { content: [], structuredContent: { price: 5 } }, '{"price":5}'],
  ["structure without content", { structuredContent: { price: 5 } }, '{"price":5}'],
  ["structure in addition to a blank text", { content: text(" "), structuredContent: [1] }, "[1]"],
  ["structure that is a text", { content: null, structuredContent: "five" }, "five"],
  ["a structure of nothing but false", { structuredContent: false }, "false"],
  ["members of another version", { toolResult: { price: 5 }, _meta: { at: 1 } }, '{"toolResult":{"price":5}}'],
  ["content that is a text", { content: "five" }, "five"],
  ["content that is one block", { content: { type: "text", text: "five" } }, "five"],
  ["a text among blocks", { content: ["five"] }, "five"],
  ["a link", { content: [{ type: "resource_link", name: "menu", uri: "shop://menu" }] }, "menu: shop://menu"],
  [
    "a link with a description and no name",
    { content: [{ type: "resource_link", uri: "shop://menu", description: "What there is" }] },
    "shop://menu (What there is)",
  ],
  [
    "a resource of text",
    { content: [{ type: "resource", resource: { uri: "shop://1", text: "a teapot" } }] },
    "a teapot",
  ],
  [
    "a resource of bytes",
    { content: [{ type: "resource", resource: { uri: "shop://1", blob: "AAAA", mimeType: "application/pdf" } }] },
    "[application/pdf: shop://1]",
  ],
  ["sound", { content: [{ type: "audio", mimeType: "audio/wav", data: "AAAA" }] }, "[audio, audio/wav]"],
  ["an image of no type", { content: [{ type: "image", data: "AAAA" }] }, "[image, without a media type]"],
  [
    "a block of a new type",
    { content: [{ type: "video", uri: "shop://film" }] },
    '{"type":"video","uri":"shop://film"}',
  ],
  ["a block that lacks its text", { content: [{ type: "text", value: "five" }] }, '{"type":"text","value":"five"}'],
  ["blocks that are no objects", { content: [5, null] }, "5\nnull"],
  ["nothing", {}, "no result"],
  ["nothing but what is for the client", { content: [], _meta: { at: 1 }, isError: false }, "no result"],
])("a result reaches the model as text: %s", (_what, result, read) => {
  expect(contentOf(result)).toBe(read);
});

test.each<[string, McpResult, string]>([
  ["in its text", { content: text("the card is refused") }, "the card is refused"],
  ["in its structure, with empty content", { content: [], structuredContent: { code: 402 } }, '{"code":402}'],
  ["in its structure, without content", { structuredContent: { code: 402 } }, '{"code":402}'],
  [
    "in its structure, with a blank text",
    { content: text("", "\n"), structuredContent: { code: 402 } },
    '{"code":402}',
  ],
  ["in a structure that is a text", { structuredContent: "the card is refused" }, "the card is refused"],
  ["in a structure that is a list", { content: [], structuredContent: ["card", "refused"] }, '["card","refused"]'],
  ["in a resource", { content: [{ type: "resource", resource: { uri: "a:b", text: "refused" } }] }, "refused"],
  ["in a member of its own", { error: { code: 402 } }, '{"error":{"code":402}}'],
  ["in an image, with a structure", { content: [pixel], structuredContent: { code: 402 } }, '{"code":402}'],
  ["in an image", { content: [pixel] }, "the tool failed and returned an image"],
  ["nowhere", { content: [] }, "the tool failed"],
])("the text of a failed tool reaches the model: %s", (_where, result, said) => {
  expect(() => contentOf({ ...result, isError: true })).toThrow(said);
});

test("images are parts, in their order, whatever the case of their type", () => {
  const blob = { type: "resource", resource: { uri: "a:b", mimeType: "Image/PNG; q=1", blob: "AAAA" } };
  expect(contentOf({ content: [...text("Here:"), pixel, { ...pixel, mimeType: "IMAGE/PNG" }, blob] })).toEqual([
    { type: "text", text: "Here:" },
    ...[shown, shown, shown],
  ]);
  expect(contentOf({ content: [pixel], structuredContent: { price: 5 } })).toEqual([
    shown,
    { type: "text", text: '{"price":5}' },
  ]);
});
