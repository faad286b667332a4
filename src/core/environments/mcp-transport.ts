/**
 * MCP's streamable HTTP for the official SDK's client, over `can.fetch`: each message is one POST, and each reply is read to
 * its end. The SDK's own transport wants streams and a URL, which core has not. Source: Model Context Protocol, 2025-11-25,
 * "Transports".
 *
 * Invariants. No connection is held between calls, so a session is a header, and whoever knows it goes on with it. Servers
 * may not ask anything of their own accord: no stream is opened for that. A request whose reply ends without its answer
 * fails; it is never waited for.
 */
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { LIMITS } from "../../contract/limits.ts";
import { shortText } from "../../contract/shown-text.ts";
import { holdsMore } from "../schema/bounded-lists.ts";
import type { Capabilities, FetchReply } from "./contract.ts";

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
  /** Throws for what is no message of JSON-RPC. */
  readonly parse: (value: unknown) => JSONRPCMessage;
  readonly session: McpSession | null;
}

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
    const body = JSON.stringify(message);
    const reply = await this.#ask("POST", { body, "content-type": "application/json" });
    const text = await reply.text();
    if (reply.status < 200 || reply.status > 299) {
      throw new Error(`HTTP ${reply.status}: ${shortText(text, 200)}`);
    }
    const request = "method" in message && "id" in message ? message : null;
    if (request?.method === "initialize") {
      this.sessionId = reply.headers.get("mcp-session-id") ?? undefined;
    }
    const answers = this.#messagesIn(reply, text);
    for (const answer of answers) this.onmessage?.(answer);
    if (request !== null && !answers.some((answer) => "id" in answer && answer.id === request.id)) {
      throw new Error(`the reply to ${request.method} ended without an answer`);
    }
  }

  /** Tells the server that the session is over; servers that do not want to hear of it say 405. */
  async end(): Promise<void> {
    if (this.sessionId === undefined) return;
    const { status } = await this.#ask("DELETE", {});
    this.sessionId = undefined;
    if (status >= 500) throw new Error(`HTTP ${status} at the end of the session`);
  }

  async #ask(
    method: string,
    { body, ...more }: { readonly body?: string } & Readonly<Record<string, string>>,
  ): Promise<FetchReply> {
    const { fetch, url, headers } = this.#parts;
    const sent = {
      ...headers,
      ...more,
      accept: "application/json, text/event-stream",
      ...(this.sessionId !== undefined && { "mcp-session-id": this.sessionId }),
      ...(this.#version !== undefined && { "mcp-protocol-version": this.#version }),
    };
    return await fetch(url, { method, headers: sent, ...(body !== undefined && { body }) });
  }

  /** Nothing at all is no message, whatever type it is said to have: so Python's servers accept a notification. */
  #messagesIn(reply: FetchReply, text: string): JSONRPCMessage[] {
    if (text.trim() === "") return [];
    const type = reply.headers.get("content-type") ?? "";
    if (type.startsWith("text/event-stream")) return dataOf(text).map((data) => this.#parsed(data));
    return type.startsWith("application/json") ? [this.#parsed(text)] : [];
  }

  #parsed(text: string): JSONRPCMessage {
    const message = jsonOf(text);
    const most = LIMITS.valuesPerMessage;
    if (holdsMore(message, most)) throw new Error(`a message of more than ${most} values`);
    return this.#parts.parse(message);
  }
}

/** What the parser says of a text that is no JSON quotes it: a server may repeat the key of a header. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    throw new Error(`the reply is no JSON: ${text.length} characters`);
  }
}

/** The data of each event, by the HTML standard's "Server-sent events"; events without any are left out. */
function dataOf(stream: string): string[] {
  const events = stream.replaceAll(/\r\n?/g, "\n").split("\n\n");
  return events
    .map((event) =>
      event
        .split("\n")
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice("data:".length).replace(/^ /, ""))
        .join("\n"),
    )
    .filter((data) => data !== "");
}
