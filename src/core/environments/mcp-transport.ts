/**
 * MCP's streamable HTTP transport for the official SDK's client, over `can.fetch`: each message is one POST. The SDK's
 * own transport needs streams and URL, which core does not have. Source: Model Context Protocol, 2025-11-25,
 * "Transports".
 *
 * Invariants. No connection is open between calls, so a session is a header, and any process that has its id can
 * continue it. A server can send requests only in its reply to a request: no other stream is opened. A reply is read
 * until the answer is there; a request fails if its reply ends without the answer.
 */
import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import { EventReader } from "../../contract/event-stream.ts";
import { parseKeepingNumbers } from "../../contract/exact-json.ts";
import { isRecord } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { isJsonType, mediaTypeOf } from "../../contract/media-type.ts";
import { shortText } from "../../contract/shown-text.ts";
import { holdsMore } from "../schema/bounded-lists.ts";
import type { Capabilities, FetchOptions, FetchReply } from "./contract.ts";

/** What identifies a session at the server, after the handshake. */
export interface McpSession {
  /** Null: the server has no sessions. */
  readonly id: string | null;
  readonly version: string;
}

export interface TransportParts {
  readonly fetch: Capabilities["fetch"];
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly session: McpSession | null;
}

type Head = Pick<FetchReply, "status" | "headers">;
type MessageRequest = Extract<JSONRPCMessage, { method: string; id: string | number }>;

const EVENT_STREAM = "text/event-stream";

export class FetchTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport["onmessage"];
  /** If it is undefined, the client starts with the handshake. */
  sessionId: string | undefined;
  readonly #parts: TransportParts;
  #version: string | undefined;

  constructor(parts: TransportParts) {
    this.#parts = parts;
    this.sessionId = parts.session?.id ?? undefined;
    this.#version = this.sessionId === undefined ? undefined : parts.session?.version;
  }

  get session(): McpSession {
    return { id: this.sessionId ?? null, version: this.#version ?? "" };
  }

  async start(): Promise<void> {
    // There is no connection: the first message is the first request.
  }

  async close(): Promise<void> {
    this.onclose?.();
  }

  setProtocolVersion(version: string): void {
    this.#version = version;
  }

  /** Throws for a status that is not a success, and for a reply without the answer. */
  async send(message: JSONRPCMessage): Promise<void> {
    const request = "method" in message && "id" in message ? message : null;
    const listener = new ReplyListener(request, (message) => this.onmessage?.(message));
    const reply = await this.#ask("POST", {
      body: JSON.stringify(message),
      until: (piece, head) => listener.receive(piece, head),
    });
    const text = await reply.text();
    if (!isSuccess(reply)) throw new Error(`HTTP ${reply.status}: ${shortText(text, 200)}`);
    if (request === null) return;
    if (request.method === "initialize") {
      this.sessionId = reply.headers.get("mcp-session-id") ?? undefined;
    }
    const answer = listener.answerIn(text, reply);
    this.onmessage?.(answer);
  }

  /** Ends the session at the server; servers that do not support this reply 405. */
  async end(): Promise<void> {
    if (this.sessionId === undefined) return;
    const { status } = await this.#ask("DELETE", {});
    this.sessionId = undefined;
    if (status >= 500) throw new Error(`HTTP ${status} at the end of the session`);
  }

  async #ask(method: string, message: Pick<FetchOptions, "body" | "until">): Promise<FetchReply> {
    const { fetch, url, headers } = this.#parts;
    const sent = {
      ...headers,
      ...(message.body !== undefined && { "content-type": "application/json" }),
      accept: `application/json, ${EVENT_STREAM}`,
      ...(this.sessionId !== undefined && { "mcp-session-id": this.sessionId }),
      ...(this.#version !== undefined && { "mcp-protocol-version": this.#version }),
    };
    // After this time the caller has stopped waiting (mcp-connection.ts), so a silent stream is closed.
    return await fetch(url, { method, headers: sent, timeoutMs: LIMITS.toolMs, ...message });
  }
}

function isSuccess({ status }: Head): boolean {
  return status >= 200 && status <= 299;
}

function typeOf({ headers }: Head): string {
  return mediaTypeOf(headers.get("content-type"));
}

/**
 * Finds the answer to one request in its reply. Other messages of an event stream (notifications, a server's ping) are
 * passed on as they arrive: a server may wait for the answer to its ping. An unreadable message is skipped; it is the
 * reason in the error if no answer comes.
 */
class ReplyListener {
  readonly #request: MessageRequest | null;
  readonly #handOn: (message: JSONRPCMessage) => void;
  readonly #events = new EventReader();
  #received = false;
  #answer: JSONRPCMessage | null = null;
  #fault: Error | null = null;

  /** `request`: null for a message without an answer, of whose reply nothing is needed. */
  constructor(request: MessageRequest | null, handOn: (message: JSONRPCMessage) => void) {
    this.#request = request;
    this.#handOn = handOn;
  }

  /** True if no more of the reply is needed. A reply that is not an event stream is read to its end. */
  receive(piece: string, head: Head): boolean {
    if (!isSuccess(head) || typeOf(head) !== EVENT_STREAM) return false;
    if (this.#request === null) return true;
    this.#received = true;
    this.#take(this.#events.push(piece));
    return this.#answer !== null;
  }

  /** `text`: the whole reply so far. Throws if the answer is not in it. */
  answerIn(text: string, head: Head): JSONRPCMessage {
    const type = typeOf(head);
    if (type === EVENT_STREAM) {
      if (!this.#received) this.receive(text, head);
      this.#take(this.#events.end());
    } else if (isJsonType(type) || /^\s*[[{]/.test(text)) {
      // An empty text is not a message, whatever its media type.
      if (text.trim() !== "") this.#read(text);
    }
    if (this.#answer !== null) return this.#answer;
    throw this.#fault ?? new Error(`the reply to ${this.#request?.method} ended without an answer`);
  }

  #take(events: ReturnType<EventReader["push"]>): void {
    for (const { name, data } of events) {
      if (name === "message" && data !== "" && this.#answer === null) this.#read(data);
    }
  }

  #read(text: string): void {
    try {
      const value = jsonOf(text);
      const most = LIMITS.valuesPerMessage;
      if (holdsMore(value, most)) throw new Error(`a message has more than ${most} values`);
      // Servers of 2025-03-26 may send several messages in a list.
      for (const message of Array.isArray(value) ? value : [value]) this.#sort(message);
    } catch (thrown) {
      this.#fault ??= thrown instanceof Error ? thrown : new Error(String(thrown));
    }
  }

  #sort(message: unknown): void {
    const answer = this.#request === null ? null : answerTo(this.#request, message);
    if (answer !== null) this.#answer = answer;
    else this.#handOn(parseJSONRPCMessage(message));
  }
}

/**
 * The answer to a request, if the message is one; null otherwise. Parsed leniently: an id as a text, an error without a
 * code or with a null result next to it, an error without an id. Throws for an answer without result and error.
 */
function answerTo({ id, method }: MessageRequest, message: unknown): JSONRPCMessage | null {
  if (!isRecord(message) || typeof message["method"] === "string") return null;
  const { id: named, result, error } = message;
  const failed = error !== undefined && error !== null;
  const isNamed = (typeof named === "string" || typeof named === "number") && String(named) === String(id);
  if (!isNamed && !(failed && (named === undefined || named === null))) return null;
  if (failed) return { jsonrpc: "2.0", id, error: errorOf(error) };
  if (isRecord(result)) return { jsonrpc: "2.0", id, result };
  throw new Error(`the answer to ${method} has neither a result nor an error`);
}

function errorOf(error: unknown): { code: number; message: string; data?: unknown } {
  const { code, message, data }: Readonly<Record<string, unknown>> = isRecord(error) ? error : { message: error };
  return {
    code: Number.isInteger(code) ? Number(code) : INTERNAL_ERROR,
    message: typeof message === "string" && message !== "" ? message : JSON.stringify(error),
    ...(data !== undefined && { data }),
  };
}

/** The code of JSON-RPC 2.0 for an internal error. */
const INTERNAL_ERROR = -32_603;

/**
 * Parses JSON. Only numbers that a double cannot hold become raw: an id may be 1.0. The parser's own error message is
 * not used, because it quotes the text, in which a server may repeat the key of a header.
 */
function jsonOf(text: string): unknown {
  try {
    return parseKeepingNumbers(text);
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    throw new Error(`the reply is not JSON: ${text.length} characters`);
  }
}
