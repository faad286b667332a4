/**
 * An environment whose tools are those of MCP servers, spoken to over streamable HTTP (`needs: ["fetch"]`).
 *
 * Invariants. Tools are listed once, at set-up, and kept in the rollout's state (`state.mcp`) with the servers'
 * sessions: a restart offers the model the same tools and goes on with the same sessions. Arguments are checked against
 * a tool's own JSON Schema before its server sees them. A server that does not answer ends the rollout, which may be
 * retried; what a tool says, errors included, is the model's to read.
 */

import type { CallToolResult, ContentBlock, Tool } from "@modelcontextprotocol/client";
import * as z from "zod";
import { EnvError, ToolCallError } from "../../contract/errors.ts";
import { cloneJson, type JsonObject } from "../../contract/json.ts";
import type { Content, ContentPart, ToolDefinition } from "../../contract/messages.ts";
import { WorkBudgetError } from "../rubrics/work.ts";
import { schemaChecker } from "../schema/json-schema.ts";
import type { AnyTool, Capabilities, LiveState, OwnState, RolloutFields } from "./contract.ts";
import type { EnvironmentOptions, RolloutHooks } from "./environment.ts";
import { McpConnection, type McpServer, type McpSession } from "./mcp-connection.ts";
import type { CleanupOptions } from "./stops.ts";
import { badArguments } from "./tool-call.ts";
import { TOOL_OPTIONS, ToolEnv, type ToolOptions } from "./tool-env.ts";

export interface McpLive {
  /** Calls a tool by its server's own name for it; what it gives is what the model would read. */
  readonly mcp: { call(server: string, tool: string, args: JsonObject): Promise<Content> };
}

type Errors = Required<Pick<ToolOptions<unknown, object, McpLive>, "stopErrors" | "formatError">>;

export interface McpOptions<Task, S> extends EnvironmentOptions<Task, S>, RolloutHooks<Task, S, McpLive> {
  /** Each server has a name, which stands before a tool's own where two servers share it. */
  readonly servers: Readonly<Record<string, McpServer>>;
  /** Tools of the environment's own, beside the servers'. */
  readonly tools?: readonly AnyTool[];
  readonly stopErrors?: Errors["stopErrors"];
  readonly formatError?: Errors["formatError"];
  /** The handles are the connections. */
  readonly openLive?: never;
  readonly closeLive?: never;
}

/** What stands in the state under `mcp`. */
interface McpState {
  readonly sessions: Readonly<Record<string, McpSession>>;
  readonly tools: readonly McpTool[];
}

const OPTIONS = [...TOOL_OPTIONS, "servers"].filter((name) => !/^(open|close)Live$/.test(name));
const ANY_ARGUMENTS = z.looseObject({});

export class MCPEnv<Task, S extends OwnState<S> = object> extends ToolEnv<Task, S, McpLive> {
  readonly #servers: Readonly<Record<string, McpServer>>;

  /** Throws TypeError for an unknown option. */
  constructor(options: McpOptions<Task, S>) {
    super({ ...options, tools: options.tools ?? [] }, { options: OPTIONS, providesHidden: false });
    this.#servers = options.servers;
  }

  override async setupState(state: RolloutFields<Task>, can: Capabilities): Promise<S> {
    const own = await super.setupState(state, can);
    if ("mcp" in own) throw new EnvError("state.mcp is MCPEnv's own; setupState must not return it");
    const connections = new Connections(this.#servers, can, {});
    try {
      const mcp = await connections.list(this.toolDefinitions.map((tool) => tool.function.name));
      return { ...own, mcp };
    } finally {
      await connections.close();
    }
  }

  override openLive(state: object, can: Capabilities): McpLive {
    return { mcp: new Connections(this.#servers, can, mcpOf(state)?.sessions ?? {}) };
  }

  override async closeLive({ live }: LiveState<Task, S, McpLive>): Promise<void> {
    if (live.mcp instanceof Connections) await live.mcp.close();
  }

  override toolDefinitionsOf(state: JsonObject): readonly ToolDefinition[] {
    return [...this.toolDefinitions, ...(mcpOf(state)?.tools ?? []).map(definitionOf)];
  }

  protected override cleanupEntries(): CleanupOptions<LiveState<Task, S, McpLive>> {
    const end = async ({ live }: Partial<McpLive> & { readonly live?: McpLive }) => {
      if (live?.mcp instanceof Connections) await live.mcp.end();
    };
    return { ...super.cleanupEntries(), mcp_sessions: end };
  }

  protected override toolNamed(name: string, state: LiveState<Task, S, McpLive>): AnyTool | undefined {
    const own = super.toolNamed(name, state);
    const listed = mcpOf(state)?.tools.find((tool) => tool.name === name);
    return own ?? (listed && runnable(listed, state.live));
  }
}

/** The connections of one rollout, in one process. */
class Connections {
  readonly #byServer: ReadonlyMap<string, McpConnection>;

  constructor(servers: Readonly<Record<string, McpServer>>, can: Capabilities, sessions: McpState["sessions"]) {
    this.#byServer = new Map(
      Object.entries(servers).map(([name, server]) => [
        name,
        new McpConnection(name, server, can, sessions[name] ?? null),
      ]),
    );
  }

  async list(taken: readonly string[]): Promise<McpState> {
    const listed = await Promise.all(
      [...this.#byServer].map(async ([server, connection]) => ({
        server,
        ...(await connection.list()),
      })),
    );
    return {
      sessions: Object.fromEntries(listed.map(({ server, session }) => [server, session])),
      tools: nameTools(listed, taken),
    };
  }

  async call(server: string, tool: string, args: JsonObject): Promise<Content> {
    const connection = this.#byServer.get(server);
    if (connection === undefined) throw new EnvError(`there is no MCP server named ${server}`);
    return contentOf(await connection.call(tool, args));
  }

  async end(): Promise<void> {
    await Promise.all([...this.#byServer.values()].map((connection) => connection.end()));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#byServer.values()].map((connection) => connection.close()));
  }
}

function runnable({ name, server, tool, parameters, ...rest }: McpTool, live: McpLive): AnyTool {
  const run = async (args: JsonObject): Promise<Content> => {
    const faults = faultsIn(args, parameters);
    if (faults.length > 0) {
      throw badArguments(`bad arguments for ${name}: ${faults.join("; ")}`);
    }
    return await live.mcp.call(server, tool, args);
  };
  const { description, idempotent } = rest;
  return { name, description, idempotent, parameters: ANY_ARGUMENTS, hidden: [], takesRawNumbers: true, run };
}

/** A schema that we cannot follow, or not within the work of one check, is left to the server that wrote it. */
function faultsIn(args: JsonObject, parameters: JsonObject): readonly string[] {
  try {
    return schemaChecker(parameters)(args);
  } catch (thrown) {
    if (thrown instanceof TypeError || thrown instanceof WorkBudgetError) return [];
    throw thrown;
  }
}

/** Absent before set-up. */
function mcpOf(state: object): McpState | undefined {
  return (state as { readonly mcp?: McpState }).mcp;
}

// Tools of MCP servers as the model sees them: names it may call them by, and results it can read.
//
// Invariants. What was offered is data and stays as it was listed, so a rollout taken up again offers the same. A name
// is what endpoints accept, and no two tools have one: where servers share a name, the server's own comes before it.

/** A tool as it is kept in a rollout's state. */
export interface McpTool {
  /** What the model calls it. */
  readonly name: string;
  readonly server: string;
  /** What its server calls it. */
  readonly tool: string;
  readonly description: string;
  readonly parameters: JsonObject;
  readonly idempotent: boolean;
}

/** Endpoints take 64 of these characters. */
const UNFIT = /[^A-Za-z0-9_-]/g;
const LONGEST_NAME = 64;

/** `taken`: names that are not to be given. Throws EnvError when two tools cannot be told apart. */
function nameTools(
  listed: readonly { readonly server: string; readonly tools: readonly Tool[] }[],
  taken: readonly string[],
): McpTool[] {
  const all = listed.flatMap(({ server, tools }) => tools.map((tool) => ({ server, tool })));
  const count = new Map(taken.map((name) => [name, 1]));
  for (const { tool } of all) count.set(endpointName(tool.name), (count.get(endpointName(tool.name)) ?? 0) + 1);
  const names = new Set(taken);
  return all.map(({ server, tool }) => {
    const shared = (count.get(endpointName(tool.name)) ?? 0) > 1;
    const name = endpointName(shared ? `${server}_${tool.name}` : tool.name);
    if (names.has(name)) {
      throw new EnvError(`two tools are named ${name}: rename the MCP server ${server}`);
    }
    names.add(name);
    return toolOf(name, server, tool);
  });
}

function definitionOf({ name, description, parameters }: McpTool): ToolDefinition {
  return { type: "function", function: { name, description, parameters } };
}

/**
 * What the model reads: the text where there is nothing else, joined by newlines, or parts. Throws ToolCallError with
 * the text of a result that says it is an error.
 */
function contentOf({ content, structuredContent, isError }: CallToolResult): Content {
  const parts = content.map(partOf);
  const texts = parts.flatMap((part) => ("text" in part ? [String(part.text)] : []));
  const text = texts.join("\n");
  if (isError === true) throw new ToolCallError(text === "" ? "the tool failed" : text);
  if (texts.length < parts.length) return parts;
  if (text !== "") return text;
  return structuredContent === undefined ? "no result" : JSON.stringify(structuredContent);
}

function toolOf(name: string, server: string, tool: Tool): McpTool {
  const { annotations, description, title, inputSchema } = tool;
  return {
    name,
    server,
    tool: tool.name,
    description: description ?? title ?? annotations?.title ?? "",
    parameters: cloneJson(inputSchema as JsonObject),
    idempotent: mayRunTwice(annotations ?? {}),
  };
}

/** As its server says. One that says nothing is taken for repeatable, like any tool. */
function mayRunTwice({ readOnlyHint, idempotentHint, destructiveHint }: NonNullable<Tool["annotations"]>): boolean {
  if (readOnlyHint === true || idempotentHint === true) return true;
  return idempotentHint === undefined && destructiveHint !== true;
}

function endpointName(name: string): string {
  return name.replaceAll(UNFIT, "_").slice(0, LONGEST_NAME);
}

function partOf(block: ContentBlock): ContentPart {
  switch (block.type) {
    case "text":
      return asText(block.text);
    case "image":
      return imageOf(block.mimeType, block.data);
    case "audio":
      return asText(`[audio, ${block.mimeType}]`);
    case "resource_link":
      return asText(`${block.name}: ${block.uri}`);
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return asText(resource.text);
      const type = resource.mimeType ?? "binary data";
      return type.startsWith("image/") ? imageOf(type, resource.blob) : asText(`[${type}: ${resource.uri}]`);
    }
  }
}

function asText(text: string): ContentPart {
  return { type: "text", text };
}

function imageOf(mimeType: string, data: string): ContentPart {
  return { type: "image_url", image_url: { url: `data:${mimeType};base64,${data}` } };
}
