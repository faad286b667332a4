/**
 * Converts the content and the tool calls of a reply to OpenAI's shapes. Besides a text and a list of parts, content
 * may be: parts of OpenAI's other APIs (`output_text`, a text as `{value}`), parts without a type, texts as parts, one
 * part without its list, or a number or an object, if the server parsed JSON that the model wrote.
 */
import { isRawNumber } from "../../contract/exact-json.ts";
import { isRecord } from "../../contract/json.ts";

/** Content of any other shape is returned unchanged. */
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

/** "No calls" may be null, empty or false; one call may come without a list, several as an object by number. */
export function callsOf(calls: unknown): readonly unknown[] {
  if (Array.isArray(calls)) return calls.filter((call) => call !== null);
  if (!calls) return [];
  return isRecord(calls) && !("function" in calls || "name" in calls) ? Object.values(calls) : [calls];
}
