/**
 * An environment with the tools of MCP servers, over streamable HTTP (`needs: ["fetch"]`).
 *
 * Invariants. Tools are listed once, at set-up, and kept in the rollout's state (`state.mcp`) with the servers'
 * sessions: after a restart the model is offered the same tools and the sessions continue. Arguments are checked
 * against a tool's own JSON Schema before they are sent to its server. A server that does not answer ends the rollout,
 * which may be retried; the model reads a tool's results, including errors.
 */

import * as z from "zod";
import { EnvError } from "../../contract/errors.ts";
import type { JsonObject } from "../../contract/json.ts";
import type { Content, ToolDefinition } from "../../contract/messages.ts";
import { WorkBudgetError } from "../rubrics/work.ts";
import { schemaChecker } from "../schema/json-schema.ts";
import type { AnyTool, Capabilities, LiveState, OwnState, RolloutFields } from "./contract.ts";
import type { EnvironmentOptions, RolloutHooks } from "./environment.ts";
import { McpConnection, type McpServer } from "./mcp-connection.ts";
import { contentOf } from "./mcp-result.ts";
import { definitionOf, type McpTool, type OfferedTools, offerTools } from "./mcp-tools.ts";
import type { McpSession } from "./mcp-transport.ts";
import type { CleanupOptions } from "./stops.ts";
import { badArguments } from "./tool-call.ts";
import { TOOL_OPTIONS, ToolEnv, type ToolOptions } from "./tool-env.ts";

export interface McpLive {
  /** Calls a tool by its name at the server; returns the content that the model would read. */
  readonly mcp: { call(server: string, tool: string, args: JsonObject): Promise<Content> };
}

type Errors = Required<Pick<ToolOptions<unknown, object, McpLive>, "stopErrors" | "formatError">>;

export interface McpOptions<Task, S> extends EnvironmentOptions<Task, S>, RolloutHooks<Task, S, McpLive> {
  /** Servers by name. The name is put before a tool's own if two servers have a tool of that name. */
  readonly servers: Readonly<Record<string, McpServer>>;
  /** The environment's own tools, in addition to the servers'. */
  readonly tools?: readonly AnyTool[];
  readonly stopErrors?: Errors["stopErrors"];
  readonly formatError?: Errors["formatError"];
  /** The handles are the connections. */
  readonly openLive?: never;
  readonly closeLive?: never;
}

/** The value of `mcp` in the state. */
interface McpState extends OfferedTools {
  readonly sessions: Readonly<Record<string, McpSession>>;
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
    if ("mcp" in own) throw new EnvError("state.mcp is reserved for MCPEnv; setupState must not return it");
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
      ...offerTools(listed, taken),
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

/** If our validator cannot use the schema, or exceeds its work budget, the server checks the arguments. */
function faultsIn(args: JsonObject, parameters: JsonObject): readonly string[] {
  try {
    return schemaChecker(parameters)(args);
  } catch (thrown) {
    if (thrown instanceof TypeError || thrown instanceof WorkBudgetError) return [];
    throw thrown;
  }
}

/** Undefined before set-up. */
function mcpOf(state: object): McpState | undefined {
  return (state as { readonly mcp?: McpState }).mcp;
}
