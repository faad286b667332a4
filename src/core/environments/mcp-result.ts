/**
 * Converts the result of an MCP tool to content for the model. Source: Model Context Protocol, 2025-11-25, "Tools",
 * tool result.
 *
 * Invariants. Everything that a server returns reaches the model, in whichever member or type of block it is: blocks
 * that are neither text nor image become text. A result with content never becomes an empty text.
 */
import { ToolCallError } from "../../contract/errors.ts";
import { isRecord } from "../../contract/json.ts";
import { mediaTypeOf } from "../../contract/media-type.ts";
import type { Content, ContentPart } from "../../contract/messages.ts";

export type McpResult = Readonly<Record<string, unknown>>;

type Block = Readonly<Record<string, unknown>>;

/**
 * Text parts joined by newlines if there is nothing else, or a list of parts. Throws ToolCallError with the text of a
 * result that is marked as an error.
 */
export function contentOf(result: McpResult): Content {
  const parts = blocksOf(result["content"]).map(partOf);
  const texts = parts.flatMap((part) => ("text" in part ? [String(part.text)] : []));
  const text = texts.join("\n");
  const beside = text.trim() === "" ? besideContent(result) : null;
  const hasImages = texts.length < parts.length;
  if (result["isError"] === true) {
    throw new ToolCallError(beside ?? (text || `the tool failed${hasImages ? " and returned an image" : ""}`));
  }
  if (hasImages) return beside === null ? parts : [...parts, asText(beside)];
  return beside ?? (text || "no result");
}

/** The blocks: a list, or a single block without a list. */
function blocksOf(content: unknown): readonly unknown[] {
  if (Array.isArray(content)) return content;
  return content === undefined || content === null ? [] : [content];
}

/** `structuredContent`, or the members that other versions of the protocol use instead; null if there are none. */
function besideContent({ content: _, isError: _error, _meta, resultType: _type, ...rest }: McpResult): string | null {
  const { structuredContent, ...others } = rest;
  const value = structuredContent ?? (Object.keys(others).length > 0 ? others : null);
  if (value === null || value === "") return null;
  return typeof value === "string" ? value : JSON.stringify(value);
}

function partOf(block: unknown): ContentPart {
  if (typeof block === "string") return asText(block);
  if (!isRecord(block)) return asText(JSON.stringify(block) ?? "");
  return knownPart(block) ?? asText(JSON.stringify(block));
}

/** Null for a block of an unknown type, or without the members of its type. */
function knownPart(block: Block): ContentPart | null {
  const { type, text, data, mimeType, resource } = block;
  switch (type) {
    case "text":
      return typeof text === "string" ? asText(text) : null;
    case "image":
      return typeof data === "string" ? imageOf(mimeType, data) : null;
    case "audio":
      return typeof data === "string" ? asText(`[audio, ${shownType(mimeType)}]`) : null;
    case "resource_link":
      return typeof block["uri"] === "string" ? asText(linkOf(block)) : null;
    case "resource":
      return isRecord(resource) ? resourceOf(resource) : null;
    default:
      return null;
  }
}

function resourceOf(resource: Block): ContentPart | null {
  const { text, blob, mimeType, uri } = resource;
  if (typeof text === "string") return asText(text);
  if (typeof blob !== "string") return null;
  if (mediaTypeOf(typeof mimeType === "string" ? mimeType : "").startsWith("image/")) return imageOf(mimeType, blob);
  return asText(`[${typeof mimeType === "string" ? mimeType : "binary data"}: ${typeof uri === "string" ? uri : "?"}]`);
}

function linkOf({ name, title, uri, description }: Block): string {
  const named = [name, title].find((one) => typeof one === "string" && one !== "");
  const link = named === undefined ? String(uri) : `${String(named)}: ${String(uri)}`;
  return typeof description === "string" && description !== "" ? `${link} (${description})` : link;
}

function imageOf(mimeType: unknown, data: string): ContentPart {
  const type = mediaTypeOf(typeof mimeType === "string" ? mimeType : "");
  if (!type.startsWith("image/")) return asText(`[image, ${shownType(mimeType)}]`);
  return { type: "image_url", image_url: { url: `data:${type};base64,${data}` } };
}

function shownType(mimeType: unknown): string {
  return typeof mimeType === "string" && mimeType !== "" ? mimeType : "without a media type";
}

function asText(text: string): ContentPart {
  return { type: "text", text };
}
