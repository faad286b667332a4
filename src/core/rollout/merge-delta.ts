/**
 * The pieces of a streamed message, put together. Texts are joined, tool calls are told apart by index, id or name, and of
 * what a server adds of its own the last value counts, lists being joined.
 */
import { isRecord } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";

export type Members = Readonly<Record<string, unknown>>;
type Mutable = Record<string, unknown>;

/** Members of a message whose pieces follow each other as text. */
const TEXTS: ReadonlySet<string> = new Set(["reasoning", "reasoning_content", "refusal", "thinking"]);

/** `message` takes what `delta` adds. */
export function mergeDelta(message: Mutable, delta: Members): void {
  for (const [name, value] of Object.entries(delta)) {
    if (value === undefined || name === "__proto__") continue;
    // A null says that the piece adds nothing; it stays where nothing else comes.
    if (value === null) message[name] ??= null;
    else if (name === "content") message[name] = joinedContent(message[name], value);
    else if (name === "tool_calls") message[name] = mergeCalls(message[name], value);
    else message[name] = joined(name, message[name], value);
  }
}

function joined(name: string, before: unknown, value: unknown): unknown {
  if (typeof value === "string" && typeof before === "string" && TEXTS.has(name)) return before + value;
  if (Array.isArray(value)) return joinedList(Array.isArray(before) ? before : [], value);
  return value;
}

/** Mistral's models that think stream parts first and plain texts behind them. */
function joinedContent(before: unknown, value: unknown): unknown {
  if (before === undefined || before === null) return Array.isArray(value) ? joinedList([], value) : value;
  if (typeof before === "string" && typeof value === "string") return before + value;
  return joinedList(partsOf(before), partsOf(value));
}

function partsOf(content: unknown): unknown[] {
  if (Array.isArray(content)) return content;
  return content === "" ? [] : [{ type: "text", text: content }];
}

/** Entries of one kind and number (`type`, `index`) follow each other as pieces of one. */
function joinedList(before: unknown[], items: readonly unknown[]): unknown[] {
  for (const item of items) {
    const last = before.at(-1);
    if (before.length >= LIMITS.valuesPerReply) return before;
    if (isRecord(last) && isRecord(item) && isSamePart(last, item)) before[before.length - 1] = joinedPart(last, item);
    else before.push(item);
  }
  return before;
}

function isSamePart(one: Members, other: Members): boolean {
  return typeof one["type"] === "string" && one["type"] === other["type"] && one["index"] === other["index"];
}

function joinedPart(last: Members, piece: Members): Members {
  const whole: Mutable = { ...last };
  for (const [name, value] of Object.entries(piece)) {
    if (value === null || value === undefined || name === "__proto__") continue;
    const before = whole[name];
    const isText = typeof value === "string" && typeof before === "string" && PIECES.has(name);
    if (isText) whole[name] = before + value;
    else if (Array.isArray(value) && Array.isArray(before)) whole[name] = joinedList([...before], value);
    else whole[name] = value;
  }
  return whole;
}

/** Members of a part whose pieces follow each other as text. */
const PIECES: ReadonlySet<string> = new Set(["text", "summary", "data", "thinking", "reasoning"]);

function mergeCalls(before: unknown, pieces: unknown): unknown[] {
  const calls = Array.isArray(before) ? before : [];
  for (const piece of Array.isArray(pieces) ? pieces : [pieces]) {
    if (!isRecord(piece)) continue;
    const at = callOf(calls, piece);
    // One call more than a reply may hold: it is refused as a whole one would be.
    if (at === -1 && calls.length > LIMITS.toolCallsPerReply) continue;
    if (at === -1) calls.push(mergedCall({}, piece));
    else calls[at] = mergedCall(calls[at], piece);
  }
  return calls;
}

/** Which call a piece goes on with; -1 for a new one. */
function callOf(calls: readonly Members[], piece: Members): number {
  const { id, index } = piece;
  const named = typeof id === "string" && id !== "";
  const at = typeof index === "number" ? calls.findLastIndex((call) => call["index"] === index) : calls.length - 1;
  const call = calls[at];
  if (call === undefined) return -1;
  const known = call["id"];
  if (named && typeof known === "string" && known !== "" && known !== id) {
    return calls.findLastIndex((one) => one["id"] === id);
  }
  // Without ids a whole call behind another is one of its own: Gemini numbers all of them 0.
  return !named && looksWhole(call) && isWholeCall(piece) ? -1 : at;
}

function looksWhole(call: Members): boolean {
  const args = functionOf(call)["arguments"];
  return typeof args === "string" ? args.startsWith("{") && args.endsWith("}") : args !== undefined;
}

/** A name, and all of its arguments. */
function isWholeCall(piece: Members): boolean {
  const { name, arguments: args } = functionOf(piece);
  if (typeof name !== "string" || name === "") return false;
  return typeof args === "string" ? looksWhole(piece) && isJson(args) : args !== undefined && args !== null;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return false;
    throw thrown;
  }
}

function mergedCall(before: Members, piece: Members): Members {
  const call: Mutable = { ...before };
  for (const [name, value] of Object.entries(piece)) {
    if (value === null || value === undefined || value === "" || name === "__proto__") continue;
    call[name] = name === "function" && isRecord(value) ? mergedFunction(functionOf(before), value) : value;
  }
  return call;
}

/** The name comes once, or again with every piece; the arguments in pieces, or whole. */
function mergedFunction(before: Members, piece: Members): Members {
  const called: Mutable = { ...before };
  for (const [name, value] of Object.entries(piece)) {
    if (value === null || value === undefined || name === "__proto__") continue;
    const known = called[name];
    if (name === "arguments" && typeof known === "string" && typeof value === "string") called[name] = known + value;
    else if (name !== "name" || value !== "" || known === undefined) called[name] = value;
  }
  return called;
}

function functionOf(call: Members): Members {
  return isRecord(call["function"]) ? call["function"] : {};
}
