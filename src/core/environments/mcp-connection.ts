/**
 * One rollout's conversation with one MCP server, held by the official SDK's client.
 *
 * Invariants. Nothing is asked of a server before something is wanted of it. A session that was begun is gone on with,
 * after a restart too; only `end` ends it. What the server says of a call is the model's to read (ToolCallError); a
 * server that does not answer, or has forgotten the session, is an InfraError.
 */
import {
  type CallToolResult,
  Client,
  type JSONRPCMessage,
  ProtocolError,
  parseJSONRPCMessage,
  type Tool,
  type Transport,
} from "@modelcontextprotocol/client";
import { InfraError, RolloutError, ToolCallError } from "../../contract/errors.ts";
import type { JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { shortText } from "../../contract/shown-text.ts";
import { holdsMore } from "../schema/bounded-lists.ts";
import type { Capabilities, FetchReply } from "./contract.ts";

export interface McpServer {
  readonly url: string;
  /** Sent with every request; a function where they hold secrets. */
  readonly headers?: Readonly<Record<string, string>> | ((can: Capabilities) => Readonly<Record<string, string>>);
}

interface Open {
  readonly client: Client;
  readonly transport: FetchTransport;
}

/** The stage of whoever calls ends sooner, unless it was given more. */
const PATIENCE = { timeout: LIMITS.toolMs };

export class McpConnection {
  readonly #name: string;
  readonly #server: McpServer;
  readonly #can: Capabilities;
  readonly #session: McpSession | null;
  #open: Promise<Open> | null = null;

  /** `session`: one to go on with. */
  constructor(name: string, server: McpServer, can: Capabilities, session: McpSession | null) {
    this.#name = name;
    this.#server = server;
    this.#can = can;
    this.#session = session;
  }

  async list(): Promise<{ readonly tools: readonly Tool[]; readonly session: McpSession }> {
    return await this.#asking(async ({ client, transport }) => {
      const { tools } = await client.listTools(undefined, PATIENCE);
      return { tools, session: transport.session };
    });
  }

  async call(tool: string, args: JsonObject): Promise<CallToolResult> {
    return await this.#asking(({ client }) => client.callTool({ name: tool, arguments: { ...args } }, PATIENCE));
  }

  /** Tells the server that nobody will go on with the session. */
  async end(): Promise<void> {
    if (this.#open === null && (this.#session?.id ?? null) === null) return;
    await this.#asking(({ transport }) => transport.end());
  }

  /** The session stays. */
  async close(): Promise<void> {
    const open = this.#open;
    this.#open = null;
    const opened = await open?.catch(() => null);
    await opened?.client.close();
  }

  async #asking<T>(ask: (open: Open) => Promise<T>): Promise<T> {
    this.#open ??= this.#connect();
    try {
      return await ask(await this.#open);
    } catch (thrown) {
      if (thrown instanceof RolloutError) throw thrown;
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      if (thrown instanceof ProtocolError) throw new ToolCallError(message, { cause: thrown });
      throw new InfraError(`the MCP server ${this.#name}: ${message}`, { cause: thrown });
    }
  }

  async #connect(): Promise<Open> {
    const { url, headers = {} } = this.#server;
    const transport = new FetchTransport({
      fetch: this.#can.fetch,
      url,
      headers: typeof headers === "function" ? headers(this.#can) : headers,
      session: this.#session,
    });
    const client = new Client({ name: "rollcall", version: "1.0.0" });
    await client.connect(transport, PATIENCE);
    return { client, transport };
  }
}

// MCP's streamable HTTP for the official SDK's client, over `can.fetch`: each message is one POST, and each reply is
// read to its end. The SDK's own transport wants streams and a URL, which core has not. Source: Model Context Protocol,
// 2025-11-25, "Transports".
//
// Invariants. No connection is held between calls, so a session is a header, and whoever knows it goes on with it.
// Servers may not ask anything of their own accord: no stream is opened for that. A request whose reply ends without
// its answer fails; it is never waited for.

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
    if (type.startsWith("text/event-stream")) return dataOf(text).map((data) => this.#parse(data));
    return type.startsWith("application/json") ? [this.#parse(text)] : [];
  }

  #parse(text: string): JSONRPCMessage {
    const message = jsonOf(text);
    const most = LIMITS.valuesPerMessage;
    if (holdsMore(message, most)) throw new Error(`a message of more than ${most} values`);
    return parseJSONRPCMessage(message);
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
