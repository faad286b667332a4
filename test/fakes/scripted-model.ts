/**
 * The only fake of the outside world: an OpenAI-compatible server of chat completions, embeddings and logprobs of prompts
 * on loopback that answers from a function. A text to embed is passed to the function as a user message, and its reply holds the
 * vectors. It has real sockets, exact formats (OpenAI's, with vLLM's token ids and logprobs if a reply has them), and
 * the failures of real endpoints. It does no more per request than that, because benchmarks share the machine with it.
 */
import { appendFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Message, type ToolDefinition, textOf } from "../../src/contract/messages.ts";
import { completionBody, type Reply, type ReplyParts } from "./completion-body.ts";
import { embeddingsBody } from "./embeddings-body.ts";
import { type HostileBody, sendHostileBody } from "./hostile-body.ts";
import { promptLogprobsBody } from "./prompt-logprobs.ts";
import { streamOf } from "./streamed-completion.ts";
import { textCompletionBody, textStreamOf } from "./text-completion.ts";
import { messagesOfIds, tokenizeReply } from "./token-model.ts";

/** The arguments of the reply function for one request. */
export interface ModelRequest {
  /** Such as /v1/chat/completions. */
  readonly path: string;
  readonly model: string;
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  readonly headers: IncomingMessage["headers"];
  /** The whole body, as sent. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Whether the client has disconnected. */
  readonly gone: () => boolean;
  /** Sends the headers of a stream before its content, as real servers do. Must not be called if the reply is a fault. */
  readonly begin: () => void;
}

/** A failure of a real endpoint. */
export type Fault =
  | { kind: "status"; status: number; headers?: Record<string, string>; body?: unknown }
  /** The connection is cut without an answer. */
  | { kind: "reset" }
  /** Status 200, half of a body, and then the connection is cut. */
  | { kind: "cut" }
  /** Never answers; the client's timeout has to end it. */
  | { kind: "hang" }
  /** A status (200 by default) and a body that is not JSON, by default an incomplete one. */
  | { kind: "garbage"; status?: number; text?: string }
  /** These server-sent events; by default the beginning of a reply, without its end. `rest`: what follows, and when. */
  | { kind: "stream"; text?: string; rest?: { text: string; ms: number } }
  | { kind: "empty_choices" }
  | HostileBody;

/** A reply, or a fault in its place. */
export type Answer = Reply | { readonly fault: Fault };

/** One request, recorded when it arrived. */
export interface LoggedRequest {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly idempotency_key: string | null;
  readonly model: string;
  readonly messages: number;
  readonly last_user: string;
  /** The status sent; null while unanswered, and permanently after a reset or a hang. */
  status: number | null;
}

export interface ScriptedModelOptions {
  /** The reply to one request, or its failure. */
  readonly reply: (request: ModelRequest) => Answer | Promise<Answer>;
  /** 0 or absent: any free port. If the port is in use, any free port is used. */
  readonly port?: number;
  readonly latencyMs?: number;
  /** A file that gets one JSON line per request, written before the request is answered. */
  readonly log?: string;
}

export interface ScriptedModel {
  /** Including /v1. */
  readonly url: string;
  readonly port: number;
  readonly requests: readonly LoggedRequest[];
  inFlight(): number;
  setLatency(ms: number): void;
  /** The next `count` completions fail this way. */
  failNext(count: number, fault: Fault): void;
  stop(): Promise<void>;
}

export async function startScriptedModel(options: ScriptedModelOptions): Promise<ScriptedModel> {
  const engine = new Engine(options);
  const server = createServer((request, response) => engine.serve(request, response));
  // A pooled connection must survive the pauses of a run; closing it in between would look like a fault.
  server.keepAliveTimeout = 600_000;
  const port = await listen(server, options.port ?? 0);
  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    requests: engine.requests,
    inFlight: () => engine.inFlight,
    setLatency: (ms) => {
      engine.latencyMs = ms;
    },
    failNext: (count, fault) => engine.faults.push(...Array<Fault>(count).fill(fault)),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

class Engine {
  readonly requests: LoggedRequest[] = [];
  readonly faults: Fault[] = [];
  inFlight = 0;
  latencyMs: number;
  readonly #options: ScriptedModelOptions;
  #served = 0;

  constructor(options: ScriptedModelOptions) {
    this.#options = options;
    this.latencyMs = options.latencyMs ?? 0;
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    if (request.method === "GET" && request.url === "/v1/models") {
      sendJson(response, 200, { object: "list", data: [{ id: "scripted", object: "model" }] });
      return;
    }
    if (request.method !== "POST" || !ROUTES.includes(request.url ?? "")) {
      sendJson(response, 404, errorBody(404, `no such route: ${request.method} ${request.url}`));
      return;
    }
    this.inFlight += 1;
    response.once("close", () => {
      this.inFlight -= 1;
    });
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      this.#complete(request, response, Buffer.concat(parts)).catch((error: unknown) => {
        sendJson(response, 500, errorBody(500, String(error)));
      });
    });
  }

  async #complete(request: IncomingMessage, response: ServerResponse, bytes: Buffer): Promise<void> {
    const asked = readRequest(request, response, bytes);
    if (asked === null) {
      sendJson(response, 400, errorBody(400, "the body must be a JSON object with messages"));
      return;
    }
    const entry = this.#note(asked);
    const fault = this.faults.shift();
    if (this.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, this.latencyMs));
    if (fault !== undefined) {
      entry.status = sendFault(response, fault);
      return;
    }
    const reply = await this.#options.reply(asked);
    if (isFault(reply)) {
      entry.status = sendFault(response, reply.fault);
      return;
    }
    this.#served += 1;
    entry.status = 200;
    const promptTokens = Math.ceil(bytes.length / 4);
    const parts = typeof reply === "string" ? { content: reply } : reply;
    if (request.url === TOKENIZE) {
      sendJson(response, 200, tokenizeReply(asked.body));
      return;
    }
    const body = this.#bodyOf(request, asked, parts, promptTokens);
    if (request.url === COMPLETIONS && asked.body["prompt_logprobs"] === undefined) {
      const completion = textCompletionBody(body);
      if (asked.body["stream"] === true) sendStream(response, textStreamOf(completion));
      else sendJson(response, 200, completion);
      return;
    }
    const options = asked.body["stream_options"];
    const usage = typeof options === "object" && options !== null && "include_usage" in options;
    if (asked.body["stream"] === true) sendStream(response, streamOf(body, { usage }));
    else sendJson(response, 200, body);
  }

  #bodyOf(
    { url }: IncomingMessage,
    { model, body }: ModelRequest,
    parts: ReplyParts,
    promptTokens: number,
  ): Record<string, unknown> {
    if (url === EMBEDDINGS) return embeddingsBody(parts, model, promptTokens);
    const logprobs = url === COMPLETIONS ? promptLogprobsBody(body, this.#served) : null;
    return logprobs ?? completionBody(parts, model, this.#served, promptTokens);
  }

  #note(asked: ModelRequest): LoggedRequest {
    const key = asked.headers["idempotency-key"];
    const entry: LoggedRequest = {
      at: Date.now(),
      idempotency_key: typeof key === "string" ? key : null,
      model: asked.model,
      messages: asked.messages.length,
      last_user: textOf(asked.messages.findLast((message) => message.role === "user")),
      status: null,
    };
    this.requests.push(entry);
    // Synchronous: a reader of the file must find every request that arrived before it killed a client.
    if (this.#options.log !== undefined) {
      appendFileSync(this.#options.log, `${JSON.stringify(entry)}\n`);
    }
    return entry;
  }
}

const EMBEDDINGS = "/v1/embeddings";
/** vLLM's: beside /v1, and its reply is made of the request alone, unless the function returns a fault. */
const TOKENIZE = "/tokenize";
const COMPLETIONS = "/v1/completions";
/** prime-rl's: a chat completion whose prompt is the ids in `tokens`. */
const CHAT_TOKENS = "/v1/chat/completions/tokens";
const ROUTES = [EMBEDDINGS, "/v1/chat/completions", CHAT_TOKENS, TOKENIZE, COMPLETIONS];

interface RequestBody extends Record<string, unknown> {
  model?: string;
  messages: Message[];
  tools?: ToolDefinition[];
}

function readRequest(request: IncomingMessage, response: ServerResponse, bytes: Buffer): ModelRequest | null {
  const body = withMessages(parseJson(bytes));
  if (!hasMessages(body)) return null;
  const { model = "", messages, tools = [] } = body;
  const gone = () => response.destroyed;
  const begin = () => {
    if (body["stream"] === true) beginStream(response);
  };
  return { path: request.url ?? "", model, messages, tools, headers: request.headers, body, gone, begin };
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Adds `messages` to requests that have none: texts to embed, or a prompt of token ids. Prompts to score get an empty list. */
function withMessages(body: unknown): unknown {
  if (typeof body !== "object" || body === null) return body;
  if ("prompt" in body && "prompt_logprobs" in body) return { ...body, messages: [] };
  if ("prompt" in body && Array.isArray(body.prompt)) return { ...body, messages: messagesOfIds(body.prompt) };
  if (!("input" in body)) return body;
  const { input, ...rest } = body;
  if (!Array.isArray(input)) return body;
  return { ...rest, messages: input.map((content) => ({ role: "user", content })) };
}

/** A short check is enough for a fake: its only client is the platform, whose requests are typed. */
function hasMessages(body: unknown): body is RequestBody {
  return typeof body === "object" && body !== null && "messages" in body && Array.isArray(body.messages);
}

function isFault(answer: Answer): answer is { readonly fault: Fault } {
  return typeof answer === "object" && "fault" in answer;
}

/** The status sent, or null if nothing was. */
function sendFault(response: ServerResponse, fault: Fault): number | null {
  switch (fault.kind) {
    case "status": {
      const body = fault.body ?? errorBody(fault.status, `scripted failure ${fault.status}`);
      sendJson(response, fault.status, body, fault.headers);
      return fault.status;
    }
    case "reset":
      response.socket?.resetAndDestroy();
      return null;
    case "cut":
      response.writeHead(200, { "content-type": "application/json", "content-length": 1000 });
      response.write('{"id": "chatcmpl-', () => response.socket?.resetAndDestroy());
      return 200;
    case "hang":
      return null;
    case "garbage":
      response.writeHead(fault.status ?? 200, { "content-type": "application/json" });
      response.end(fault.text ?? '{"id": "chatcmpl-');
      return fault.status ?? 200;
    case "stream":
      sendStream(
        response,
        fault.text ?? 'data: {"choices": [{"index": 0, "delta": {"content": "4"}}]}\n\n',
        fault.rest,
      );
      return 200;
    case "empty_choices":
      sendJson(response, 200, { id: "chatcmpl-empty", object: "chat.completion", choices: [] });
      return 200;
    case "endless":
    case "bomb":
    case "drip":
    case "long_error":
      return sendHostileBody(response, fault);
  }
}

function sendJson(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

function beginStream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  response.flushHeaders();
}

function sendStream(
  response: ServerResponse,
  text: string,
  rest?: { readonly text: string; readonly ms: number },
): void {
  if (!response.headersSent) beginStream(response);
  if (rest === undefined) {
    response.end(text);
    return;
  }
  response.write(text);
  setTimeout(() => response.end(rest.text), rest.ms).unref();
}

/** vLLM's format: `code` is the HTTP status, as a number. */
function errorBody(status: number, message: string): unknown {
  const type = status < 500 ? "BadRequestError" : "InternalServerError";
  return { error: { message, type, param: null, code: status } };
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) => {
      if (port !== 0 && "code" in error && error.code === "EADDRINUSE") {
        listen(server, 0).then(resolve, reject);
      } else {
        reject(error);
      }
    });
    server.listen(port, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}
