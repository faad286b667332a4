/**
 * The pieces of a streamed message, put together. Texts are joined, tool calls are told apart by index, id or name, and of
 * what a server adds of its own the last value counts, lists being joined.
 *
 * Invariant. Nothing that was put together before is copied for another piece: the time is linear in the stream.
 */
import { isRecord } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { callsOf, contentOf } from "./reply-shapes.ts";

export type Members = Readonly<Record<string, unknown>>;
type Mutable = Record<string, unknown>;

/** Members of a message, or of a part of one, whose pieces follow each other as text. */
const TEXTS: ReadonlySet<string> = new Set(["reasoning", "reasoning_content", "refusal", "thinking"]);
const PIECES: ReadonlySet<string> = new Set(["text", "summary", "data", "thinking", "reasoning"]);
/** Parts that are streamed in pieces without a number. */
const UNNUMBERED: ReadonlySet<unknown> = new Set(["text", "thinking", "reasoning.text", "reasoning.summary"]);
/** What a message, a call or a part may have; more is left out. */
const MOST_MEMBERS = 100;

/** `message` takes what `delta` adds. */
export function mergeDelta(message: Mutable, delta: Members): void {
  for (const [name, value] of Object.entries(delta)) {
    if (!isTaken(message, name, value)) continue;
    // A null says that the piece adds nothing; it stays where nothing else comes.
    if (value === null) message[name] ??= null;
    else if (name === "content") message[name] = joinedContent(message[name], contentOf(value));
    else if (name === "tool_calls") message[name] = mergeCalls(message[name], value);
    else if (name === "function_call" && isRecord(value)) mergeFunction(ownMembers(message, name), value);
    else message[name] = joined(name, message[name], value);
  }
}

function isTaken(object: Mutable, name: string, value: unknown): boolean {
  if (value === undefined || name === "__proto__") return false;
  return name in object || Object.keys(object).length < MOST_MEMBERS;
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

function joinedList(before: unknown[], items: readonly unknown[]): unknown[] {
  for (const item of items) {
    if (before.length > LIMITS.valuesPerReply) return before;
    const last = before.at(-1);
    if (isRecord(last) && isRecord(item) && isSamePart(last, item)) joinPart(last, item);
    else before.push(item);
  }
  return before;
}

/** A piece of the part before it: of the same number, or of a kind that comes in pieces. */
function isSamePart(one: Members, other: Members): boolean {
  const { type, index, id } = other;
  if (typeof type !== "string" || one["type"] !== type || one["index"] !== index) return false;
  if (typeof id === "string" && typeof one["id"] === "string" && one["id"] !== id) return false;
  return typeof index === "number" || UNNUMBERED.has(type);
}

function joinPart(whole: Mutable, piece: Members): void {
  for (const [name, value] of Object.entries(piece)) {
    if (value === null || !isTaken(whole, name, value)) continue;
    const before = whole[name];
    if (typeof value === "string" && typeof before === "string" && PIECES.has(name)) whole[name] = before + value;
    else if (Array.isArray(value) && Array.isArray(before)) joinedList(before, value);
    else whole[name] = value;
  }
}

function mergeCalls(before: unknown, pieces: unknown): unknown[] {
  const calls: Mutable[] = Array.isArray(before) ? before : [];
  for (const piece of callsOf(pieces)) {
    if (!isRecord(piece)) continue;
    const call = callOf(calls, piece) ?? {};
    // One call more than a reply may hold: it is refused as a whole one would be.
    if (!calls.includes(call) && calls.length <= LIMITS.toolCallsPerReply) calls.push(call);
    mergeCall(call, piece);
  }
  return calls;
}

/** The call that a piece goes on with; null where it begins another. */
function callOf(calls: readonly Mutable[], piece: Members): Mutable | null {
  const { id, index } = piece;
  const numbered = typeof index === "number";
  const call = numbered ? calls.findLast((one) => one["index"] === index) : calls.at(-1);
  if (call === undefined) return null;
  const { name = "" } = functionOf(piece);
  if (typeof id === "string" && id !== "") {
    if (call["id"] === id || typeof call["id"] !== "string" || call["id"] === "") return call;
    // GLM sends another id with every piece of a call: only a name begins one.
    return numbered && !name ? call : (calls.findLast((one) => one["id"] === id) ?? null);
  }
  return name && beginsAnother(call, piece, numbered) ? null : call;
}

/** Without ids a whole call behind another is one of its own: Gemini numbers all of them 0. */
function beginsAnother(call: Members, piece: Members, numbered: boolean): boolean {
  if (!numbered && functionOf(call)["name"] !== functionOf(piece)["name"]) return true;
  return isWholeCall(piece) && looksWhole(call);
}

function looksWhole(call: Members): boolean {
  const args = functionOf(call)["arguments"];
  return typeof args === "string" ? args.startsWith("{") && args.endsWith("}") : args !== undefined;
}

/** It has all of its arguments. */
function isWholeCall(piece: Members): boolean {
  const { arguments: args } = functionOf(piece);
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

function mergeCall(call: Mutable, piece: Members): void {
  for (const [name, value] of Object.entries(piece)) {
    if (value === null || value === "" || !isTaken(call, name, value)) continue;
    if (name === "function" && isRecord(value)) mergeFunction(ownMembers(call, name), value);
    else if (name !== "id" || call[name] === undefined) call[name] = value;
  }
}

/** The name comes once, or again with every piece; the arguments in pieces, or whole. */
function mergeFunction(called: Mutable, piece: Members): void {
  for (const [name, value] of Object.entries(piece)) {
    if (value === null || !isTaken(called, name, value)) continue;
    const known = called[name];
    const areTexts = typeof known === "string" && typeof value === "string";
    if (areTexts && name === "arguments") called[name] = known + value;
    else if (areTexts && name === "name") called[name] = joinedName(called, known, value);
    else called[name] = value;
  }
}

/** What is the same is said again; what differs before any arguments is the rest of it. */
function joinedName({ arguments: args = "" }: Members, known: string, piece: string): string {
  return piece !== known && args === "" ? known + piece : known;
}

/** The object under a name, made if it is not there. */
function ownMembers(object: Mutable, name: string): Mutable {
  const own = object[name];
  if (isRecord(own)) return own;
  const made: Mutable = {};
  object[name] = made;
  return made;
}

function functionOf(call: Members): Members {
  return isRecord(call["function"]) ? call["function"] : {};
}
