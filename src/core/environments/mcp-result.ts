/**
 * The result of an MCP tool as the model reads it. Source: Model Context Protocol, 2025-11-25, "Tools", tool result.
 *
 * Invariants. What a server says reaches the model, whichever member it stands in and whatever kind of block it is: what is
 * no text, and no image, is told as text. An empty text stands nowhere for something that was said.
 */
import { ToolCallError } from "../../contract/errors.ts";
import { isRecord } from "../../contract/json.ts";
import { mediaTypeOf } from "../../contract/media-type.ts";
import type { Content, ContentPart } from "../../contract/messages.ts";

export type McpResult = Readonly<Record<string, unknown>>;

type Block = Readonly<Record<string, unknown>>;

/**
 * The text where there is nothing else, joined by newlines, or parts. Throws ToolCallError with the text of a result
 * that says it is an error.
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

/** A list, or one block that stands by itself. */
function blocksOf(content: unknown): readonly unknown[] {
  if (Array.isArray(content)) return content;
  return content === undefined || content === null ? [] : [content];
}

/** `structuredContent`, or the members that a server of another version has in its place; null where there is nothing. */
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

/** Null for a block of a type that is not known, or without what its type has. */
function knownPart(block: Block): ContentPart | null {
  const { type, text, data, mimeType, resource } = block;
  switch (type) {
    case "text":
      return typeof text === "string" ? asText(text) : null;
    case "image":
      return typeof data === "string" ? imageOf(mimeType, data) : null;
    case "audio":
      return typeof data === "string" ? asText(`[audio, ${typeSaid(mimeType)}]`) : null;
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
  if (!type.startsWith("image/")) return asText(`[image, ${typeSaid(mimeType)}]`);
  return { type: "image_url", image_url: { url: `data:${type};base64,${data}` } };
}

function typeSaid(mimeType: unknown): string {
  return typeof mimeType === "string" && mimeType !== "" ? mimeType : "without a media type";
}

function asText(text: string): ContentPart {
  return { type: "text", text };
}
