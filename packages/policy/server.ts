/**
 * The policy server: vLLM's HTTP interface over the engine, on loopback.
 *
 * Invariants: every reply is JSON, except metrics, health and streams; every error has vLLM's error body. A request
 * whose Host is not loopback is refused, so a page whose own domain name points here gets nothing. When a client
 * disconnects, its request is aborted. An error after a stream began becomes an event of the stream.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { mediaTypeOf } from "rollcall/helpers";
import { chatCompletions, chatCompletionsOfTokens } from "./chat-completions.ts";
import { completions } from "./completions.ts";
import type { Handler, PolicyContext, PolicyReply, PolicyRequest, Send } from "./reply.ts";
import { errorBody, RequestError } from "./request-schemas.ts";
import {
  detokenize,
  empty,
  load,
  metrics,
  models,
  resetPrefixCache,
  tokenize,
  updateWeights,
  version,
  weightInfo,
} from "./routes.ts";

const MAX_BODY_BYTES = 1024 * 1024;
/** A pooled connection must survive the pauses of a run; closing it in between would look like an error. */
const KEEP_ALIVE_MS = 600_000;
/**
 * The backlog of connections: a run opens a thousand at once, and connections beyond the backlog are reset or delayed.
 */
const BACKLOG = 4096;
const ROUTES: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
  "/v1/chat/completions": { POST: chatCompletions },
  "/v1/chat/completions/tokens": { POST: chatCompletionsOfTokens },
  "/v1/completions": { POST: completions },
  "/v1/models": { GET: models },
  "/tokenize": { POST: tokenize },
  "/detokenize": { POST: detokenize },
  "/health": { GET: empty },
  "/ping": { GET: empty, POST: empty },
  "/version": { GET: version },
  "/load": { GET: load },
  "/metrics": { GET: metrics },
  "/weight_info": { GET: weightInfo },
  "/update_weights": { POST: updateWeights },
  "/reset_prefix_cache": { POST: resetPrefixCache },
};

export interface PolicyListener {
  readonly port: number;
  close(): Promise<void>;
}

/** Listens on 127.0.0.1. Port 0 means any free port; if the port is in use, any free port is used. */
export async function servePolicy(context: PolicyContext, port: number): Promise<PolicyListener> {
  const server = createServer((request, response) => {
    answer(context, request, response).catch((error: unknown) => fail(response, error));
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  return {
    port: await listen(server, port),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(context: PolicyContext, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) gone.abort();
  });
  const handler = handlerOf(request);
  const body = await readBody(request);
  const reply = await handler(context, { ...body, headers: request.headers, signal: gone.signal });
  if (!gone.signal.aborted) await write(response, reply);
}

function handlerOf({ headers, method = "", url = "" }: IncomingMessage): Handler {
  if (!isLoopback(headers.host)) {
    throw new RequestError(403, `this server answers to 127.0.0.1 only, not to ${headers.host}`);
  }
  const path = url.split("?")[0] ?? "";
  const route = Object.hasOwn(ROUTES, path) ? ROUTES[path] : undefined;
  if (route === undefined) throw new RequestError(404, `there is no route ${path}`);
  const handler = Object.hasOwn(route, method) ? route[method] : undefined;
  if (handler !== undefined) return handler;
  const methods = Object.keys(route).join(" or ");
  throw new RequestError(405, `${path} takes ${methods}, not ${method}`);
}

function isLoopback(host: string | undefined): boolean {
  return /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/i.test(host ?? "");
}

/** The body, read up to a maximum. Throws a `RequestError` of 413 as soon as it exceeds 1 MiB. */
async function readBody(request: IncomingMessage): Promise<Pick<PolicyRequest, "bytes" | "json">> {
  if (Number(request.headers["content-length"] ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > MAX_BODY_BYTES) throw tooLarge();
    parts.push(part);
  }
  const bytes = Buffer.concat(parts);
  return { bytes, json: () => parseJson(request.headers["content-type"], bytes) };
}

function tooLarge(): RequestError {
  return new RequestError(413, `the body is larger than ${MAX_BODY_BYTES} bytes`);
}

/** The content type is required, as in vLLM; a page of another site cannot send it without permission. */
function parseJson(type: string | undefined, bytes: Buffer): unknown {
  if (mediaTypeOf(type) !== "application/json") {
    throw new RequestError(400, "Unsupported Media Type: Only 'application/json' is allowed");
  }
  try {
    return JSON.parse(bytes.toString());
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new RequestError(400, `the body is no JSON: ${error.message}`);
  }
}

async function write(response: ServerResponse, reply: PolicyReply): Promise<void> {
  switch (reply.kind) {
    case "json":
      return send(response, 200, "application/json", JSON.stringify(reply.body));
    case "text":
      return send(response, 200, reply.type, reply.text);
    case "events":
      return writeEvents(response, reply.run);
  }
}

async function writeEvents(response: ServerResponse, run: (send: Send) => Promise<void>): Promise<void> {
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
  });
  const event = (body: object) => {
    if (!response.destroyed) response.write(`data: ${JSON.stringify(body)}\n\n`);
  };
  try {
    await run(event);
  } catch (error) {
    event(errorBody(error));
  }
  if (!response.destroyed) response.end("data: [DONE]\n\n");
}

function fail(response: ServerResponse, error: unknown): void {
  const body = errorBody(error);
  const status = body.error.code;
  // The rest of an oversized body is not read.
  if (status === 413) response.setHeader("connection", "close");
  send(response, status, "application/json", JSON.stringify(body));
}

function send(response: ServerResponse, status: number, type: string, text: string): void {
  // The client has gone, and a write would cause an unhandled error.
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(text) });
  response.end(text);
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
    server.listen({ port, host: "127.0.0.1", backlog: BACKLOG }, () => {
      resolve((server.address() as AddressInfo).port);
    });
  });
}
