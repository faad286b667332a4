/**
 * The content and the tool calls of a reply in the shapes that servers give them, as OpenAI's. Content beside a text and a
 * list of parts: parts of OpenAI's other APIs (`output_text`, a text as `{value}`), parts without a type, texts as parts, one
 * part without its list, a number or an object where the server parsed the JSON that a model wrote.
 */
import { isRawNumber } from "../../contract/exact-json.ts";
import { isRecord } from "../../contract/json.ts";

/** What has none of these shapes is given back as it is. */
export function contentOf(content: unknown): unknown {
  if (typeof content === "string") return content;
  if (content === undefined || content === null) return null;
  if (Array.isArray(content)) return content.flatMap(partsOf);
  if (!isRecord(content) || isRawNumber(content)) return JSON.stringify(content);
  const parts = partsOf(content);
  return parts.every(isPart) ? parts : JSON.stringify(content);
}

const TEXT_TYPES: ReadonlySet<unknown> = new Set([undefined, null, "text", "output_text"]);

function partsOf(part: unknown): readonly unknown[] {
  if (typeof part === "string") return [{ type: "text", text: part }];
  if (part === null) return [];
  if (!isRecord(part) || !TEXT_TYPES.has(part["type"])) return [part];
  const { text = part["content"] } = part;
  const said = isRecord(text) ? text["value"] : text;
  if (typeof said === "string") return [{ ...part, type: "text", text: said }];
  return said === null || (said === undefined && part["type"] != null) ? [] : [part];
}

function isPart(part: unknown): boolean {
  return isRecord(part) && typeof part["type"] === "string";
}

/** No calls are null, empty or false; one call may come without a list around it, and several under their numbers. */
export function callsOf(calls: unknown): readonly unknown[] {
  if (Array.isArray(calls)) return calls.filter((call) => call !== null);
  if (!calls) return [];
  return isRecord(calls) && !("function" in calls || "name" in calls) ? Object.values(calls) : [calls];
}
