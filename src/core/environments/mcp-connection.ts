/**
 * The connection of one rollout to one MCP server, with the official SDK's client.
 *
 * Invariants. A server gets no request before its first use. A session is continued, also after a restart; only `end`
 * ends it. An error that the server returns for a call is for the model to read (ToolCallError); a server that does not
 * answer, or has lost the session, is an InfraError.
 */
import { Client, ProtocolError } from "@modelcontextprotocol/client";
import * as z from "zod";
import { InfraError, RolloutError, ToolCallError } from "../../contract/errors.ts";
import type { JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Capabilities } from "./contract.ts";
import type { McpResult } from "./mcp-result.ts";
import { FetchTransport, type McpSession } from "./mcp-transport.ts";

export interface McpServer {
  readonly url: string;
  /** Sent with every request; a function if they contain secrets. */
  readonly headers?: Readonly<Record<string, string>> | ((can: Capabilities) => Readonly<Record<string, string>>);
}

interface Open {
  readonly client: Client;
  readonly transport: FetchTransport;
}

/** The maximal wait. The caller's stage usually ends earlier. */
const PATIENCE = { timeout: LIMITS.toolMs };

const LIST_PAGES = 64;

/** The SDK's schemas would refuse a result as a whole; mcp-tools.ts and mcp-result.ts parse it by member. */
const AnyResult = z.looseObject({});
const ToolPage = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().nullish() });

async function listPages(client: Client): Promise<readonly unknown[]> {
  const tools: unknown[] = [];
  let cursor = "";
  for (let page = 0; page < LIST_PAGES; page += 1) {
    const request = { method: "tools/list", params: cursor === "" ? {} : { cursor } } as const;
    const answer: z.infer<typeof ToolPage> = await client.request(request, ToolPage, PATIENCE);
    tools.push(...answer.tools);
    const next: string = answer.nextCursor ?? "";
    if (next === "" || next === cursor) return tools;
    cursor = next;
  }
  throw new Error(`its list of tools has more than ${LIST_PAGES} pages`);
}

export class McpConnection {
  readonly #name: string;
  readonly #server: McpServer;
  readonly #can: Capabilities;
  readonly #session: McpSession | null;
  #open: Promise<Open> | null = null;

  /** `session`: the one to continue, if any. */
  constructor(name: string, server: McpServer, can: Capabilities, session: McpSession | null) {
    this.#name = name;
    this.#server = server;
    this.#can = can;
    this.#session = session;
  }

  /** The unparsed tools: an unusable tool must not fail the whole list. */
  async list(): Promise<{ readonly tools: readonly unknown[]; readonly session: McpSession }> {
    return await this.#asking(async ({ client, transport }) => {
      const tools = client.getServerCapabilities()?.tools === undefined ? [] : await listPages(client);
      return { tools, session: transport.session };
    });
  }

  async call(tool: string, args: JsonObject): Promise<McpResult> {
    const request = { method: "tools/call", params: { name: tool, arguments: { ...args } } } as const;
    return await this.#asking(({ client }) => client.request(request, AnyResult, PATIENCE));
  }

  /** Tells the server that the session has ended. */
  async end(): Promise<void> {
    if (this.#open === null && (this.#session?.id ?? null) === null) return;
    await this.#asking(({ transport }) => transport.end());
  }

  /** Closes the connection and keeps the session. */
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
