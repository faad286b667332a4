/** OpenAI's own SDK reads the streams of the scripted servers as our reader does. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import OpenAI from "openai";
import { expect, onTestFinished, test } from "vitest";
import { callModel } from "../../../src/kernel/clients/inference.ts";
import { type StreamStyle, streamOf } from "../../fakes/streamed-completion.ts";
import { WAIT_HANGS_MS } from "../../hang-limits.ts";

const USAGE = { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 };
const HEAD = { id: "c", object: "chat.completion", created: 1, model: "m", usage: USAGE };
const called = (id: string, args: object) => ({
  ...{ id, type: "function" },
  function: { name: "add", arguments: JSON.stringify(args) },
});
const said = (message: object, finish_reason: string, more: object = {}) => ({
  ...HEAD,
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason, ...more }],
});
const logprobs = { content: ["He", "llo", "!"].map((token, at) => ({ token, logprob: -0.5 - at, top_logprobs: [] })) };

const COMPLETIONS: Readonly<Record<string, object>> = {
  "a text": said({ content: "Hello there, wörld! \u{1F600}" }, "stop"),
  "a text that is cut": said({ content: "Hello" }, "length"),
  "a tool call": said({ content: null, tool_calls: [called("a", { a: 1 })] }, "tool_calls"),
  "two tool calls and a text": said(
    { content: "Both.", tool_calls: [called("a", { a: 1 }), called("b", { b: 'x"y' })] },
    "tool_calls",
  ),
  logprobs: said({ content: "Hello!" }, "stop", { logprobs }),
};
const STYLES: Readonly<Record<string, StreamStyle>> = {
  "of OpenAI": {},
  "with comments": { comment: ": keep-alive" },
  "with CRLF": { lineEnd: "\r\n" },
  "without an end mark": { done: false },
};
/** Pieces of this many bytes cut lines and characters. */
const PIECE = 37;

/** A server that streams the completion "NAME/STYLE", the name of the model. Returns its address. */
async function serve(): Promise<string> {
  const server = createServer(async (request, response) => {
    const { model } = JSON.parse((await buffer(request)).toString()) as { model: string };
    const [name = "", style = ""] = model.split("/");
    const bytes = Buffer.from(streamOf(COMPLETIONS[name], STYLES[style]));
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let at = 0; at < bytes.length; at += PIECE) response.write(bytes.subarray(at, at + PIECE));
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

test("both fold the same message, usage, tool calls and logprobs", async () => {
  const baseURL = await serve();
  const sdk = new OpenAI({ baseURL, apiKey: "k", maxRetries: 0 });
  const models = Object.keys(COMPLETIONS).flatMap((name) => Object.keys(STYLES).map((style) => `${name}/${style}`));
  const messages = [{ role: "user", content: "Hello?" }] as const;
  for (const model of models) {
    const asked = { model, messages: [...messages], stream_options: { include_usage: true } };
    const { choices, usage } = await sdk.chat.completions.stream(asked).finalChatCompletion();
    const [choice] = choices;
    const where = { base_url: baseURL, api_key: "k", idempotency_key: "k", signal: AbortSignal.timeout(WAIT_HANGS_MS) };
    const outcome = await callModel({
      ...{ ...where, model, messages, tools: [], sampling: {}, silence_ms: 60_000 },
      send: (url, init) => fetch(url, init),
    });
    const calls = choice?.message.tool_calls?.map((call) => {
      return call.type === "function" ? [call.id, call.function.name, call.function.arguments] : [];
    });
    expect(outcome.kind, model).toBe("answered");
    const response = outcome.kind === "answered" ? outcome.response : null;
    expect(
      {
        content: response?.message.content || null,
        calls: response?.message.tool_calls?.map(({ id, function: called }) => [id, called.name, called.arguments]),
        finish: response?.finish_reason,
        usage: response?.usage,
        logprobs: response?.completion_logprobs,
      },
      model,
    ).toEqual({
      content: choice?.message.content || null,
      calls,
      finish: choice?.finish_reason,
      usage,
      logprobs: choice?.logprobs?.content?.map(({ logprob }) => logprob) ?? null,
    });
  }
});
