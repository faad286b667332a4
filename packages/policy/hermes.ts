/**
 * Tool calls as Hermes writes them: `<tool_call>{"name": "add", "arguments": {"a": 3, "b": 4}}</tool_call>`.
 *
 * Invariants. Arguments are carried as the JSON text the model wrote, byte for byte, so that a call rendered again is
 * the text that was sampled. Where vLLM's parser gives up and calls the whole reply content, so does this one.
 */

export interface HermesCall {
  readonly name: string;
  /** The JSON text of an object. */
  readonly arguments: string;
}

export interface HermesReply {
  /** The text before the first call; null when there is none. Without calls, the whole text. */
  readonly content: string | null;
  readonly toolCalls: readonly HermesCall[];
}

export const CALL_START = "<tool_call>";
const CALL_END = "</tool_call>";
const CALLS = /<tool_call>(.*?)<\/tool_call>|<tool_call>(.*)/gs;
const STRING_OR_STRUCTURE = /"(?:[^"\\]|\\.)*"|[{}[\],]/g;
const MEMBER = /^\s*("(?:[^"\\]|\\.)*")\s*:\s*(.*?)\s*$/s;

export function formatToolCall(call: HermesCall): string {
  const name = JSON.stringify(call.name);
  return `${CALL_START}{"name": ${name}, "arguments": ${call.arguments}}${CALL_END}`;
}

/** The last call may lack its end tag, text beside the calls is dropped, and one malformed call spoils them all. */
export function parseToolCalls(text: string): HermesReply {
  const start = text.indexOf(CALL_START);
  if (start < 0) return { content: text === "" ? null : text, toolCalls: [] };
  const calls = Array.from(text.matchAll(CALLS), ([, closed, open]) => parseCall(closed ?? open ?? ""));
  const toolCalls = calls.filter((call) => call !== null);
  if (toolCalls.length < calls.length) return { content: text, toolCalls: [] };
  return { content: start === 0 ? null : text.slice(0, start), toolCalls };
}

function parseCall(json: string): HermesCall | null {
  let call: unknown;
  try {
    call = JSON.parse(json);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  if (!isObject(call) || typeof call["name"] !== "string" || !isObject(call["arguments"])) {
    return null;
  }
  const members = rawMembers(json);
  return { name: call["name"], arguments: members.get("arguments") ?? "{}" };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The members of a JSON object with the text of their values. The text has been parsed: it is valid. */
function rawMembers(json: string): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  for (const member of topLevelParts(json.trim().slice(1, -1))) {
    const [, key, value] = member.match(MEMBER) ?? [];
    if (key !== undefined && value !== undefined) members.set(JSON.parse(key), value);
  }
  return members;
}

/** Cut at the commas that are in no string, array or object. */
function topLevelParts(json: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (const { 0: token, index } of json.matchAll(STRING_OR_STRUCTURE)) {
    if (token === "{" || token === "[") depth += 1;
    if (token === "}" || token === "]") depth -= 1;
    if (token !== "," || depth > 0) continue;
    parts.push(json.slice(from, index));
    from = index + 1;
  }
  return [...parts, json.slice(from)];
}
