import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { afterEach, expect, test } from "vitest";
import { whyUntrainable } from "../../../src/core/training/engine-exactness.ts";
import { probeEndpoint } from "../../../src/kernel/clients/probe.ts";
import { completionBody } from "../../fakes/completion-body.ts";
import { type EngineKind, probeReply } from "../../fakes/probe-reply.ts";

interface Call {
  readonly route: string;
  readonly authorization: string | undefined;
  readonly body: Record<string, unknown>;
}
/** Answers one call; the returned body is sent as JSON with the status. */
type Script = (call: Call) => readonly [status: number, body: unknown] | "hang" | "redirect";

const KEY = "sk-very-secret-key";
const NOW = 1_792_000_000_500;
const undo: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0)) await step();
});

async function serve(script: Script): Promise<{ base_url: string; calls: Call[] }> {
  const calls: Call[] = [];
  const server = createServer((request, response) => void answer(request, response));
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const route = `${request.method} ${request.url}`;
    const { authorization } = request.headers;
    const call = { route, authorization, body: text === "" ? {} : JSON.parse(text) };
    calls.push(call);
    const reply = script(call);
    if (reply === "hang") return;
    if (reply === "redirect") {
      response.writeHead(308, { location: "/elsewhere" }).end();
      return;
    }
    response.writeHead(reply[0], { "content-type": "application/json" });
    response.end(typeof reply[1] === "string" ? reply[1] : JSON.stringify(reply[1]));
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  undo.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(() => resolve()));
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return { base_url: `http://127.0.0.1:${port}/v1/`, calls };
}

const MODELS = { object: "list", data: [{ id: "qwen3-4b", max_model_len: 4096 }, { id: "other" }] };
const CHOICE = {
  index: 0,
  message: { role: "assistant", content: "Hi" },
  finish_reason: "length",
  logprobs: { content: [{ token: "Hi", logprob: -0.1 }] },
  token_ids: [5, 6],
};
const USAGE = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const completion = (choice: object = CHOICE) => ({ choices: [choice], usage: USAGE });

function probe(base_url: string, changes: Partial<Parameters<typeof probeEndpoint>[0]> = {}) {
  const given = { base_url, api_key: KEY, model: null, usual: null, now: NOW };
  return probeEndpoint({ ...given, ...changes });
}

test("a server that supports everything gets a request for its models and one for a completion, with the key", async () => {
  const { base_url, calls } = await serve(({ route }) =>
    route === "GET /v1/models" ? [200, MODELS] : [200, completion()],
  );
  expect(await probe(base_url)).toEqual({
    models: ["qwen3-4b", "other"],
    max_model_len: 4096,
    probed_model: "qwen3-4b",
    chat: true,
    usage: true,
    logprobs: true,
    token_ids: true,
    tools: true,
    refuses: [],
    exactness: {
      one_logprob_a_token: false,
      logprobs_mode: null,
      penalties: null,
      neutral_defaults: null,
      refused: null,
    },
    error: null,
    checked_at: 1_792_000_000,
  });
  const asked = "POST /v1/chat/completions";
  expect(calls.map(({ route }) => route)).toEqual(["GET /v1/models", ...Array(6).fill(asked)]);
  expect(new Set(calls.map(({ authorization }) => authorization))).toEqual(new Set([`Bearer ${KEY}`]));
  expect(calls[1]?.body).toMatchObject({
    model: "qwen3-4b",
    max_tokens: 2,
    return_token_ids: true,
  });
});

const RIGHT = {
  ...{ one_logprob_a_token: true, logprobs_mode: "processed", penalties: true },
  ...{ neutral_defaults: true, refused: null },
};
const KINDS: [EngineKind, object | null, RegExp | null][] = [
  ["exact", RIGHT, null],
  ["flat", RIGHT, null],
  ["own_defaults", { ...RIGHT, neutral_defaults: false }, null],
  ["short", { ...RIGHT, one_logprob_a_token: false }, /different numbers of logprobs/],
  [
    "raw",
    { ...RIGHT, logprobs_mode: "raw", penalties: null, neutral_defaults: null },
    /--logprobs-mode processed_logprobs/,
  ],
  ["penalties_ignored", { ...RIGHT, penalties: false }, /--generation-config vllm/],
  ["no_ids", null, /token ids and logprobs.*no token ids and no logprobs/],
];
const engine = (kind: EngineKind) =>
  serve(({ route, body }) =>
    route === "GET /v1/models" ? [200, MODELS] : [200, completionBody(probeReply(body, kind), "m", 1, 1)],
  );

test.each(KINDS)("for an engine that is %s, the probe reports what can be proven", async (kind, exactness, why) => {
  const found = await probe((await engine(kind)).base_url);
  expect(found).toMatchObject({ exactness, error: null, chat: true });
  if (why === null) expect(whyUntrainable(found)).toBeNull();
  else expect(whyUntrainable(found)).toMatch(why);
});

test("a server that refuses a field of training is believed, unless the run removes the field", async () => {
  const { base_url, calls } = await serve(({ route, body }) => {
    if (route === "GET /v1/models") return [200, MODELS];
    if ("cache_salt" in body) return [400, { error: { message: `${KEY}: unknown cache_salt` } }];
    return [200, completionBody(probeReply(body), "m", 1, 1)];
  });
  const found = await probe(base_url);
  expect(found.exactness?.refused).toBe("[key]: unknown cache_salt");
  expect(whyUntrainable(found)).toMatch(/unknown cache_salt.*set it to null/);
  const sampling = { extra_body: { cache_salt: null, repetition_penalty: null } };
  const again = await probe(base_url, { sampling });
  expect(again.exactness).toEqual({ ...RIGHT, penalties: null });
  expect(calls.filter(({ body }) => "repetition_penalty" in body).length).toBeGreaterThan(0);
});

test("a server that only refuses long lists of tokens does not count as refusing a field", async () => {
  const { base_url } = await serve(({ route, body }) => {
    if (route === "GET /v1/models") return [200, MODELS];
    if ("top_logprobs" in body) return [400, { error: { message: "at most 0 logprobs" } }];
    return [200, completionBody(probeReply(body), "m", 1, 1)];
  });
  const found = await probe(base_url);
  expect(found.exactness).toMatchObject({ logprobs_mode: null, penalties: null, refused: null });
  expect(whyUntrainable(found)).toBeNull();
});

test("a list of more tokens than are read gives no result", async () => {
  const many = Array.from({ length: 300 }, (_, at) => ({ token: `${at}`, logprob: -at }));
  const content = [{ token: "0", logprob: -0.1, top_logprobs: many }];
  const { base_url } = await serve(({ route }) =>
    route === "GET /v1/models"
      ? [200, MODELS]
      : [200, completion({ ...CHOICE, token_ids: [5], logprobs: { content } })],
  );
  expect((await probe(base_url)).exactness?.logprobs_mode).toBeNull();
});

test("a server that refuses an extra gets smaller requests until it answers", async () => {
  const { base_url, calls } = await serve(({ route, body }) => {
    if (route === "GET /v1/models") return [200, MODELS];
    if ("return_token_ids" in body) return [400, { error: { message: "unknown parameter" } }];
    return [200, completion({ message: CHOICE.message, logprobs: CHOICE.logprobs })];
  });
  const found = await probe(base_url);
  expect(found).toMatchObject({ chat: true, logprobs: true, token_ids: false, tools: true });
  expect(found.error).toBeNull();
  expect(calls).toHaveLength(4);
});

test("a server whose whole replies report more than its streams is called for whole replies", async () => {
  const { base_url, calls } = await serve(({ route, body }) => {
    if (route === "GET /v1/models") return [200, MODELS];
    if (!("stream" in body)) return [200, completion()];
    const delta = { index: 0, delta: CHOICE.message, finish_reason: "length" };
    return [200, `data: ${JSON.stringify({ choices: [delta] })}\n\ndata: [DONE]\n\n`];
  });
  expect(await probe(base_url)).toMatchObject({ usage: true, token_ids: true, refuses: ["streams"], error: null });
  expect(calls.slice(1, 3).map(({ body }) => body["stream"])).toEqual([true, undefined]);
  calls.length = 0;
  await probe(base_url, { refuses: ["streams"] });
  expect(calls[1]?.body).not.toHaveProperty("stream");
});

test("a server whose streams report as little as its whole replies is called for streams", async () => {
  const { base_url } = await serve(({ route }) =>
    route === "GET /v1/models" ? [200, MODELS] : [200, { choices: [{ message: { content: "Hi" } }] }],
  );
  expect(await probe(base_url)).toMatchObject({ chat: true, usage: false, refuses: [] });
});

test("a server of plain completions supports nothing more", async () => {
  const { base_url } = await serve(({ route, body }) => {
    if (route === "GET /v1/models") return [200, MODELS];
    if ("logprobs" in body || "tools" in body) return [422, { detail: "extra fields" }];
    return [200, { choices: [{ message: {} }] }];
  });
  expect(await probe(base_url)).toMatchObject({
    chat: true,
    usage: false,
    logprobs: false,
    token_ids: false,
    tools: false,
    error: null,
  });
});

test("a refused key gives a message, and a server that repeats the key does not make it part of the result", async () => {
  const echo = { error: { message: `Incorrect API key provided: ${KEY}` } };
  const { base_url, calls } = await serve(() => [401, echo]);
  const found = await probe(base_url);
  expect(found.error).toBe("401: the API key was rejected: Incorrect API key provided: [key]");
  expect(found.chat).toBe(false);
  expect(calls).toHaveLength(1);
});

test("a key that the maximum message length would cut is removed completely", async () => {
  const padding = "x".repeat(195);
  const { base_url } = await serve(() => [403, { error: { message: `${padding}${KEY}` } }]);
  expect((await probe(base_url)).error).not.toContain(KEY.slice(0, 5));
});

test("a key among the models' names is not in the result", async () => {
  const { base_url } = await serve(({ route }) =>
    route === "GET /v1/models" ? [200, { data: [{ id: KEY }] }] : [200, completion()],
  );
  expect(JSON.stringify(await probe(base_url))).not.toContain(KEY);
});

test("a key that JSON writes with escapes is not in the result of unreadable replies", async () => {
  const api_key = 'sk-"quoted"-key';
  const { base_url } = await serve(() => [401, { message: JSON.stringify({ given: api_key }) }]);
  expect((await probe(base_url, { api_key })).error).toBe('401: the API key was rejected: {"given":"[key]"}');
});

test("models with invalid names are skipped, and extras of a wrong type are ignored", async () => {
  const listed = [{ id: "x".repeat(501) }, { id: "" }, { id: "mine", max_model_len: 0 }];
  const odd = { choices: [{ message: {}, logprobs: [], token_ids: ["a"] }], usage: { completion_tokens: -1 } };
  const { base_url } = await serve(({ route }) => (route === "GET /v1/models" ? [200, { data: listed }] : [200, odd]));
  expect(await probe(base_url)).toMatchObject({
    models: ["mine"],
    max_model_len: null,
    probed_model: "mine",
    chat: true,
    usage: false,
    logprobs: false,
    token_ids: false,
    error: null,
  });
});

test("a refused connection, a timeout, and a reply that is not JSON each give a message", async () => {
  expect((await probe("http://127.0.0.1:9/v1")).error).toMatch(/^not reachable: /);
  const hanging = await serve(() => "hang");
  expect((await probe(hanging.base_url, { deadline_ms: 100 })).error).toBe("no answer within 0.1 s");
  const page = await serve(() => [200, "<html>hello</html>"]);
  const named = await probe(page.base_url, { model: "m" });
  expect(named.error).toMatch(/not a chat completion: does base_url end in \/v1\?/);
});

test("a redirect is not followed: the key is sent only to the given address", async () => {
  const { base_url, calls } = await serve(() => "redirect");
  const found = await probe(base_url, { model: "m" });
  expect(found.error).toBe("308: it redirects; use the address it redirects to");
  expect(calls.map(({ route }) => route)).not.toContain("GET /elsewhere");
});

test("without a list of models the named model is used, or no call is made", async () => {
  const { base_url, calls } = await serve(({ route }) =>
    route.startsWith("GET") ? [404, { detail: "Not Found" }] : [200, completion()],
  );
  expect(await probe(base_url)).toMatchObject({ chat: false, probed_model: null });
  expect((await probe(base_url)).error).toBe('404 for GET /models: set "model" to the one to probe');
  expect(await probe(base_url, { model: "mine" })).toMatchObject({ chat: true, error: null });
  expect(await probe(base_url, { usual: "before" })).toMatchObject({ probed_model: "before" });
  expect(calls.at(-1)?.body).toMatchObject({ model: "before" });
});

test("the model of an earlier probe is used again only while it is listed", async () => {
  const { base_url } = await serve(({ route }) => (route === "GET /v1/models" ? [200, MODELS] : [200, completion()]));
  expect(await probe(base_url, { usual: "other" })).toMatchObject({ probed_model: "other" });
  expect(await probe(base_url, { usual: "gone" })).toMatchObject({ probed_model: "qwen3-4b" });
});
