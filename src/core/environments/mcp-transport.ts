/**
 * MCP's streamable HTTP for the official SDK's client, over `can.fetch`: each message is one POST. The SDK's own transport
 * wants streams and a URL, which core has not. Source: Model Context Protocol, 2025-11-25, "Transports".
 *
 * Invariants. No connection is held between calls, so a session is a header, and whoever knows it goes on with it.
 * A server may ask something only in its reply to a request: no stream is opened for that. A reply is read until the
 * answer is there; a request whose reply ends without its answer fails, and is never waited for.
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

/** What a server knows a conversation by, once the handshake is done. */
export interface McpSession {
  /** Null: the server keeps none. */
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
  /** The client shakes hands unless it is there. */
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

  /** Throws for a status that is none of success, and for a reply without the answer. */
  async send(message: JSONRPCMessage): Promise<void> {
    const request = "method" in message && "id" in message ? message : null;
    const listener = new ReplyListener(request, (heard) => this.onmessage?.(heard));
    const reply = await this.#ask("POST", {
      body: JSON.stringify(message),
      until: (piece, head) => listener.hear(piece, head),
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

  /** Tells the server that the session is over; servers that do not want to hear of it say 405. */
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
    // Nobody waits for an answer any longer (mcp-connection.ts): a stream that stays silent holds no connection then.
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
 * Finds the answer to one request in its reply. What else comes in an event stream (notifications, a server's ping) is
 * handed on as it comes: a server may wait for its ping to be answered. A message that cannot be read is passed over,
 * and is the reason given where no answer comes.
 */
class ReplyListener {
  readonly #request: MessageRequest | null;
  readonly #handOn: (message: JSONRPCMessage) => void;
  readonly #events = new EventReader();
  #heard = false;
  #answer: JSONRPCMessage | null = null;
  #fault: Error | null = null;

  /** `request`: null for a message that has no answer; nothing of its reply is wanted. */
  constructor(request: MessageRequest | null, handOn: (message: JSONRPCMessage) => void) {
    this.#request = request;
    this.#handOn = handOn;
  }

  /** True when nothing more of the reply is wanted. What is no event stream ends by itself. */
  hear(piece: string, head: Head): boolean {
    if (!isSuccess(head) || typeOf(head) !== EVENT_STREAM) return false;
    if (this.#request === null) return true;
    this.#heard = true;
    this.#take(this.#events.push(piece));
    return this.#answer !== null;
  }

  /** `text`: the whole of what came. Throws where the answer is not in it. */
  answerIn(text: string, head: Head): JSONRPCMessage {
    const type = typeOf(head);
    if (type === EVENT_STREAM) {
      if (!this.#heard) this.hear(text, head);
      this.#take(this.#events.end());
    } else if (isJsonType(type) || /^\s*[[{]/.test(text)) {
      // Nothing at all is no message, whatever type it is said to have.
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
      // Servers of 2025-03-26 may send several in a list.
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
 * The answer to a request, where a message is that; null where it is another. Read leniently: an id as a text, an error
 * without a code or with a null result beside it, an error that names no request. Throws for an answer that says nothing.
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

/** Of JSON-RPC 2.0. */
const INTERNAL_ERROR = -32_603;

/**
 * Only what a double does not keep is a raw number: an id may be 1.0. What the parser says of a text that is no JSON quotes
 * it: a server may repeat the key of a header.
 */
function jsonOf(text: string): unknown {
  try {
    return parseKeepingNumbers(text);
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    throw new Error(`the reply is not JSON: ${text.length} characters`);
  }
}
