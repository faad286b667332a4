/**
 * Tools of MCP servers as the model sees them: names it may call them by, and results it can read.
 *
 * Invariants. What was offered is data and stays as it was listed, so a rollout taken up again offers the same. A name is
 * what endpoints accept, and no two tools have one: where servers share a name, the server's own comes before it.
 */
import type { CallToolResult, ContentBlock, Tool } from "@modelcontextprotocol/client";
import { EnvError, ToolCallError } from "../../contract/errors.ts";
import { cloneJson, type JsonObject } from "../../contract/json.ts";
import type { Content, ContentPart, ToolDefinition } from "../../contract/messages.ts";

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
export function offeredTools(
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
    return stored(name, server, tool);
  });
}

export function definitionOf({ name, description, parameters }: McpTool): ToolDefinition {
  return { type: "function", function: { name, description, parameters } };
}

/**
 * What the model reads: the text where there is nothing else, joined by newlines, or parts. Throws ToolCallError with the text
 * of a result that says it is an error.
 */
export function contentOf({ content, structuredContent, isError }: CallToolResult): Content {
  const parts = content.map(partOf);
  const texts = parts.flatMap((part) => ("text" in part ? [String(part.text)] : []));
  const text = texts.join("\n");
  if (isError === true) throw new ToolCallError(text === "" ? "the tool failed" : text);
  if (texts.length < parts.length) return parts;
  if (text !== "") return text;
  return structuredContent === undefined ? "no result" : JSON.stringify(structuredContent);
}

function stored(name: string, server: string, tool: Tool): McpTool {
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
