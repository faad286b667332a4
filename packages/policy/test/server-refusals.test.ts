/** The errors of the policy server and their messages. */
import { request } from "node:http";
import { beforeAll, expect, test } from "vitest";
import { Engine } from "../engine.ts";
import { ServingOptions } from "../request-schemas.ts";
import { servePolicy } from "../server.ts";
import { randomWeights } from "./scripted-weights.ts";

const HELLO = [{ role: "user", content: "Reverse: abc" }];
const JSON_TYPE = { "content-type": "application/json" };
let url: string;

beforeAll(async () => {
  const engine = new Engine({ weights: randomWeights(), version: "first" });
  const serving = ServingOptions.parse({});
  const context = { engine, model: "policy", serving, now: Date.now };
  const { port, close } = await servePolicy(context, 0);
  url = `http://127.0.0.1:${port}`;
  return async () => {
    await close();
    engine.stop();
  };
});

function post(path: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = JSON_TYPE) {
  return fetch(url + path, { method: "POST", headers, body });
}

async function chat(fields: object): Promise<{
  status: number;
  error: { message: string; param: string | null; type: string; code: number };
}> {
  const response = await post("/v1/chat/completions", JSON.stringify({ messages: HELLO, ...fields }));
  return { status: response.status, ...((await response.json()) as { error: never }) };
}

test.each([
  [{ messages: [] }, "messages"],
  [{ messages: [{ role: "robot", content: "x" }] }, "messages.0.role"],
  [{ messages: [{ role: "user", content: [{ type: "image_url", image_url: {} }] }] }, "messages.0.content"],
  [{ temperature: -1 }, "temperature"],
  [{ top_p: 0 }, "top_p"],
  [{ n: 65 }, "n"],
  [{ max_tokens: 0 }, "max_tokens"],
  [{ stop: "" }, "stop"],
  [{ min_tokens: 5, max_tokens: 4 }, "min_tokens"],
  [{ top_logprobs: 2 }, "top_logprobs"],
  [{ stream_options: { include_usage: true } }, "stream_options"],
  [{ tool_choice: "required", tools: [{ type: "function" }] }, "tool_choice"],
  [{ tool_choice: "auto" }, "tool_choice"],
  [{ continue_final_message: true }, "continue_final_message"],
  [{ response_format: { type: "json_schema" } }, "response_format"],
  [{ structured_outputs: { regex: "a" } }, "structured_outputs"],
  [{ presence_penalty: 3 }, "presence_penalty"],
  [{ repetition_penalty: 0 }, "repetition_penalty"],
  [{ logit_bias: { 5: 1 } }, "logit_bias"],
  [{ prompt_logprobs: 1 }, "prompt_logprobs"],
])("%j is refused with 400 and the field's name", async (fields, param) => {
  const { status, error } = await chat(fields);
  expect([status, error.type, error.code, error.param]).toEqual([400, "BadRequestError", 400, param]);
  expect(error.message).not.toBe("");
});

test("fields without an effect, null fields and unknown fields are accepted", async () => {
  const response = await post(
    "/v1/chat/completions",
    JSON.stringify({
      messages: HELLO,
      max_tokens: 2,
      temperature: null,
      stop: null,
      presence_penalty: 0,
      repetition_penalty: 1,
      logit_bias: {},
      response_format: { type: "text" },
      user: "somebody",
      some_future_field: { a: 1 },
    }),
  );
  expect(response.status).toBe(200);
});

test("a prompt and a completion beyond the context are refused with vLLM's message", async () => {
  const { status, error } = await chat({ max_tokens: 200 });
  expect([status, error.param]).toEqual([400, "input_tokens"]);
  expect(error.message).toBe(
    "This model's maximum context length is 112 tokens. However, you requested 207 tokens " +
      "(7 in the messages, 200 in the completion). Please reduce the length of the messages or completion.",
  );
  const long = [{ role: "user", content: "x".repeat(120) }];
  const streamed = await chat({ messages: long, stream: true });
  expect(streamed.error.message).toContain("maximum context length is 112 tokens");
});

test("another model's name is 404", async () => {
  const { status, error } = await chat({ model: "gpt" });
  expect([status, error]).toEqual([
    404,
    {
      message: "The model `gpt` does not exist.",
      type: "NotFoundError",
      param: "model",
      code: 404,
    },
  ]);
});

test.each([
  ["/v1/embeddings", "{}", 404],
  ["/v1/models", "{}", 405],
  ["/v1/chat/completions", "{oops", 400],
  ["/v1/completions", "[]", 400],
  ["/v1/completions", '{"prompt": ""}', 400],
  ["/v1/completions", '{"prompt": [9999]}', 400],
  ["/tokenize", "{}", 400],
  ["/detokenize", '{"tokens": [9999]}', 400],
])("POST %s of %s is %i", async (path, body, status) => {
  const response = await post(path, body);
  expect(response.status).toBe(status);
  expect(await response.json()).toMatchObject({ error: { code: status } });
});

test("a body without the JSON content type is refused", async () => {
  const response = await post("/v1/chat/completions", JSON.stringify({ messages: HELLO }), {
    "content-type": "text/plain",
  });
  expect(response.status).toBe(400);
});

test("a body over 1 MiB is 413, declared or not", async () => {
  const large = new Uint8Array(1024 * 1024 + 1);
  expect((await post("/tokenize", large)).status).toBe(413);
  const stream = new ReadableStream({
    pull(controller) {
      controller.enqueue(large);
      controller.close();
    },
  });
  const init = { method: "POST", headers: JSON_TYPE, body: stream, duplex: "half" } as const;
  expect((await fetch(`${url}/tokenize`, init)).status).toBe(413);
});

test("a Host that is not loopback is refused, even if it resolves to loopback", async () => {
  const status = (host: string) =>
    new Promise((resolve, reject) => {
      const sent = request(`${url}/health`, { headers: { host } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sent.once("error", reject).end();
    });
  const hosts = ["127.0.0.1:8000", "localhost", "[::1]:80", "evil.example", "127.0.0.1.evil.example"];
  expect(await Promise.all(hosts.map(status))).toEqual([200, 200, 200, 403, 403]);
});
