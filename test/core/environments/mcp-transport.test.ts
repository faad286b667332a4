import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { FetchOptions, FetchReply } from "../../../src/core/environments/contract.ts";
import { FetchTransport } from "../../../src/core/environments/mcp-transport.ts";

const STREAM = "text/event-stream";
const ASKED = { jsonrpc: "2.0", id: 1, method: "tools/list" } as const;
const ANSWER = { jsonrpc: "2.0", id: 1, result: { tools: [] } };
const event = (message: object, before = "") => `${before}data: ${JSON.stringify(message)}\n\n`;

interface Scripted {
  readonly type?: string | null;
  readonly status?: number;
  readonly pieces: readonly string[];
  /** The connection stays open after the last piece. */
  readonly open?: boolean;
}

/** Like the platform's `can.fetch`: it reads until `until` is satisfied, and fails if no more comes before. */
async function replied(script: Scripted, { until }: FetchOptions): Promise<FetchReply> {
  const { type = STREAM, status = 200, pieces, open = false } = script;
  const head = { status, headers: { get: (name: string) => (name === "content-type" ? type : null) } };
  let text = "";
  for (const piece of ["", ...pieces]) {
    text += piece;
    if (until?.(piece, head)) return { ...head, text: async () => text };
  }
  if (open) throw new Error("no bytes for");
  return { ...head, text: async () => text };
}

/** The messages of the reply that the client gets. */
async function received(script: Scripted, message: JSONRPCMessage = ASKED): Promise<JSONRPCMessage[]> {
  const heard: JSONRPCMessage[] = [];
  const transport = new FetchTransport({
    fetch: async (_url, options = {}) => await replied(script, options),
    url: "https://shop.example/mcp",
    headers: {},
    session: null,
  });
  transport.onmessage = (one) => void heard.push(one);
  await transport.send(message);
  return heard;
}

test.each<[string, readonly string[]]>([
  ["at once", [event(ANSWER)]],
  ["after comments that keep the stream alive", [": ping\n\n", ":\n\n", event(ANSWER, ": still here\n")]],
  ["after an event without data and a wish for the next connection", ["id: 1\nretry: 500\ndata:\n\n", event(ANSWER)]],
  ["in many pieces", [...event(ANSWER)]],
  ["with CRLF, cut between its halves", ["event: message\r", `\ndata: ${JSON.stringify(ANSWER)}\r\n\r`, "\n"]],
  ["with CR alone", [`data: ${JSON.stringify(ANSWER)}\r\r`]],
  ["over several lines", [`data: ${JSON.stringify(ANSWER, null, 1).replaceAll("\n", "\ndata: ")}\n\n`]],
  ["after an event of another kind", [`event: heartbeat\ndata: 12:00\n\n${event(ANSWER)}`]],
  ["after a message that cannot be read", [`data: hello\n\n${event({ jsonrpc: "1.0" })}${event(ANSWER)}`]],
  ["with its id as a text", [event({ ...ANSWER, id: "1" })]],
  ["with an error that is null as well", [event({ ...ANSWER, error: null })]],
])("an answer is read from a stream that stays open: %s", async (_how, pieces) => {
  expect(await received({ pieces, open: true })).toEqual([ANSWER]);
});

test.each([
  ['{"jsonrpc":"2.0","id":1.0,"result":{"tools":[],"at":"c0ffe3e4"}}', { tools: [], at: "c0ffe3e4" }],
  ['{"jsonrpc":"2.0","id":1e0,"result":{"tools":[],"n":[1.0]}}', { tools: [], n: [1] }],
  ['{"jsonrpc":"2.0","id":1.0,"result":{"tools":[],"id":1234567890123456}}', { tools: [], id: 1234567890123456 }],
])("an answer is accepted however its id is written, and its other numbers are unchanged: %s", async (text, result) => {
  expect(await received({ type: "application/json", pieces: [text] })).toEqual([{ ...ANSWER, result }]);
  const other = '{"jsonrpc":"2.0","id":9007199254740993,"result":{"tools":[]}}';
  expect(await received({ pieces: [`data: ${other}\n\ndata: ${text}\n\n`], open: true })).toContainEqual({
    ...ANSWER,
    result,
  });
});

test("messages before the answer are passed on as they arrive, and a server's request is not an answer", async () => {
  const note = { jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "one" } };
  const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
  const other = { jsonrpc: "2.0", id: 8, result: { tools: [1] } };
  const pieces = [event(note), event(note), event(ping), event(other), event(ANSWER), event(note)];
  expect(await received({ pieces, open: true })).toEqual([note, note, ping, other, ANSWER]);
});

test.each<[string, Scripted, RegExp]>([
  ["an open stream without an answer", { pieces: [": a\n\n"], open: true }, /^no bytes for$/],
  ["half an event", { pieces: [event(ANSWER).slice(0, 40)], open: true }, /^no bytes for$/],
  ["a stream that ends in half an event", { pieces: [event(ANSWER).slice(0, 40)] }, /^the reply is not JSON: 34 char/],
  [
    "a stream that ends without it",
    { pieces: [event({ ...ANSWER, id: 2 })] },
    /^the reply to tools\/list ended without/,
  ],
  ["a request under the same id", { pieces: [event(ASKED)] }, /^the reply to tools\/list ended without an answer/],
  ["an answer that says nothing", { pieces: [event({ jsonrpc: "2.0", id: 1, result: null })] }, /neither a result nor/],
  ["a stream that refuses", { status: 503, pieces: [event(ANSWER)] }, /^HTTP 503: data: /],
  ["a page", { type: "text/html", pieces: ["<p>hello</p>"] }, /^the reply to tools\/list ended without an answer/],
])("a reply without an answer fails: %s", async (_what, script, why) => {
  await expect(received(script)).rejects.toThrow(why);
});

test.each([
  "application/json",
  "APPLICATION/JSON",
  "Application/Json; charset=UTF-8",
  "application/json;charset=utf-8",
  "application/vnd.mcp+json",
  "text/plain",
  null,
])("an answer in JSON is read under the type %j", async (type) => {
  expect(await received({ type, pieces: [JSON.stringify(ANSWER)] })).toEqual([ANSWER]);
  expect(await received({ type, pieces: [JSON.stringify([ASKED, ANSWER])] })).toEqual([ASKED, ANSWER]);
});

test.each(["Text/Event-Stream; charset=UTF-8", "TEXT/EVENT-STREAM", "text/event-stream;charset=utf-8"])(
  "an event stream is recognised under the type %s",
  async (type) => {
    expect(await received({ type, pieces: [event(ANSWER)], open: true })).toEqual([ANSWER]);
  },
);

test.each<[string, object, object]>([
  ["whole", { code: -32_602, message: "no such tool" }, { code: -32_602, message: "no such tool" }],
  ["without a code", { message: "no such tool" }, { code: -32_603, message: "no such tool" }],
  ["without a message", { code: 5, why: "it is shut" }, { code: 5, message: '{"code":5,"why":"it is shut"}' }],
  ["a text", Object("it is shut"), { code: -32_603, message: "it is shut" }],
])("an error is an answer, however it is written: %s", async (_how, error, read) => {
  const expected = [{ jsonrpc: "2.0", id: 1, error: read }];
  for (const named of [{ id: 1 }, { id: null }, {}, { id: 1, result: null }]) {
    expect(await received({ pieces: [event({ jsonrpc: "2.0", ...named, error })], open: true })).toEqual(expected);
  }
});

test("the reply to a notification is not read, and no answer is awaited", async () => {
  const note = { jsonrpc: "2.0", method: "notifications/initialized" } as const;
  for (const script of [
    { status: 202, pieces: [], type: null },
    { pieces: [], open: true },
    { pieces: [": hello\n\n"], open: true },
    { type: "application/json", pieces: ["{}"] },
    { type: "text/plain", pieces: ["Accepted"] },
  ]) {
    expect(await received(script, note)).toEqual([]);
  }
});

test("whole numbers past 2^53 keep their digits", async () => {
  const text = '{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"id":9007199254740993}}}';
  const heard = await received({ pieces: [`data: ${text}\n\n`] });
  expect(JSON.stringify(heard[0])).toBe(text);
});

test("a message with too many values is not an answer, and the error says so", async () => {
  const crowded = { ...ANSWER, result: { tools: Array.from({ length: LIMITS.valuesPerMessage }, () => 0) } };
  await expect(received({ pieces: [event(crowded)] })).rejects.toThrow(/^a message has more than 100000 values$/);
});

test("the error for a reply that is not JSON has its length and no part of it, since a server may repeat a key", async () => {
  const key = `mcp-key-${"1234567890".repeat(5)}`;
  for (const script of [{ type: "application/json", pieces: [key] }, { pieces: [`data: ${key}\n\n`] }]) {
    await expect(received(script)).rejects.toThrow(/^the reply is not JSON: 58 characters$/);
  }
});
