/**
 * A shop behind MCP: the official SDK's server, as a function of web requests. It keeps a basket per session, and
 * records its requests, so that a test can check who sent what.
 */
import { fromJsonSchema, McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";

const PIXEL = "iVBORw0KGgo=";

export interface McpShopOptions {
  readonly stateful?: boolean;
  readonly labelsNothing?: boolean;
}

type Transport = WebStandardStreamableHTTPServerTransport;

export class McpShop {
  /** The requested methods, in order; the HTTP method for a request that is not a message. */
  readonly asked: string[] = [];
  /** The header `authorization` of each request. */
  readonly credentials: (string | null)[] = [];
  readonly #transports = new Map<string, Transport>();
  /** Tools that were added later. */
  readonly #late: string[];
  #sessions = 0;
  readonly #stateful: boolean;
  readonly #labelsNothing: boolean;

  /** `labelsNothing`: an empty reply has the content type JSON, as in Python's `mcp` 2.0.0. */
  constructor({ stateful = true, labelsNothing = false }: McpShopOptions = {}) {
    this.#stateful = stateful;
    this.#labelsNothing = labelsNothing;
    this.#late = [];
  }

  /** New sessions have this tool too from now on. */
  stock(name: string): void {
    this.#late.push(name);
  }

  /** Forgets every session. */
  restart(): void {
    this.#transports.clear();
  }

  /** The sessions that have not ended. */
  get sessions(): number {
    return this.#transports.size;
  }

  readonly fetch = async (request: Request): Promise<Response> => {
    this.credentials.push(request.headers.get("authorization"));
    const body: unknown = request.method === "POST" ? await request.clone().json() : {};
    this.asked.push(methodOf(body) ?? request.method);
    const known = this.#transports.get(request.headers.get("mcp-session-id") ?? "");
    if (this.#stateful && known === undefined && methodOf(body) !== "initialize") {
      return new Response("no such session", { status: 404 });
    }
    const reply = await (known ?? (await this.#open())).handleRequest(request);
    if (this.#labelsNothing && reply.body === null) {
      reply.headers.set("content-type", "application/json");
    }
    return reply;
  };

  async #open(): Promise<Transport> {
    const transport: Transport = new WebStandardStreamableHTTPServerTransport({
      enableJsonResponse: !this.#stateful,
      ...(this.#stateful && {
        sessionIdGenerator: () => `session-${++this.#sessions}`,
        onsessioninitialized: (id: string) => void this.#transports.set(id, transport),
        onsessionclosed: (id: string) => void this.#transports.delete(id),
      }),
    });
    await shelves(this.#late).connect(transport);
    return transport;
  }
}

function methodOf(body: unknown): string | undefined {
  return (body as { readonly method?: string }).method;
}

/** A server with its own basket. */
function shelves(late: readonly string[]): McpServer {
  const server = new McpServer({ name: "shop", version: "1.0.0" });
  const basket: string[] = [];
  const item = fromJsonSchema<{ item: string; count?: number }>({
    type: "object",
    properties: { item: { type: "string" }, count: { type: "integer", minimum: 1 } },
    required: ["item"],
    additionalProperties: false,
  });
  server.registerTool("add", { description: "Puts an item in.", inputSchema: item }, (asked) => {
    for (let left = asked.count ?? 1; left > 0; left -= 1) basket.push(asked.item);
    return text(`${basket.length} in the basket`);
  });
  server.registerTool("basket", { annotations: { readOnlyHint: true } }, () => text(basket.join(", "), "That is all."));
  server.registerTool("pay", { annotations: { destructiveHint: true } }, () => ({
    isError: true,
    ...text("the card is refused"),
  }));
  server.registerTool("photo", { description: "A picture." }, () => ({
    content: [
      { type: "text", text: "Here:" },
      { type: "image", mimeType: "image/png", data: PIXEL },
      { type: "audio", mimeType: "audio/wav", data: PIXEL },
      { type: "resource", resource: { uri: "shop://1", text: "a teapot" } },
    ],
  }));
  server.registerTool("empty", {}, () => ({ content: [] }));
  for (const name of late) server.registerTool(name, {}, () => text(name));
  return server;
}

function text(...lines: readonly string[]) {
  return { content: lines.map((line) => ({ type: "text" as const, text: line })) };
}
