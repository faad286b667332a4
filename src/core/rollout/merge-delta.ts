/**
 * Merges the pieces of a streamed message. Texts are joined, tool calls are distinguished by index, id or name, and of
 * a server's additional members the last value is kept; lists are joined.
 *
 * Invariant. Text that was already merged is not copied for the next piece: the time is linear in the stream.
 */
import { isRecord } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { callsOf, contentOf } from "./reply-shapes.ts";

export type Members = Readonly<Record<string, unknown>>;
type Mutable = Record<string, unknown>;

/** Members of a message, or of a part, whose pieces are joined as text. */
const TEXTS: ReadonlySet<string> = new Set(["reasoning", "reasoning_content", "refusal", "thinking"]);
const PIECES: ReadonlySet<string> = new Set(["text", "summary", "data", "thinking", "reasoning"]);
/** How the arguments of a call arrived: new pieces are compared with this, so that the whole text is never searched. */
interface Pieces {
  readonly first: string;
  readonly last: string;
  readonly count: number;
  /** Each piece begins with the previous one. */
  readonly grows: boolean;
}
const PIECES_OF = new WeakMap<object, Pieces>();

/** Types of parts that are streamed in pieces without an index. */
const UNNUMBERED: ReadonlySet<unknown> = new Set(["text", "thinking", "reasoning.text", "reasoning.summary"]);
/** Maximal number of members of a message, a call or a part; others are left out. */
const MOST_MEMBERS = 100;

/** Merges `delta` into `message`. */
export function mergeDelta(message: Mutable, delta: Members): void {
  for (const [name, value] of Object.entries(delta)) {
    if (!isTaken(message, name, value)) continue;
    // A null adds nothing; it is kept only if no other value comes.
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

/** Mistral's reasoning models stream parts first and plain texts after them. */
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

/** Whether a piece continues the previous part: it has the same index, or a type that is streamed in pieces. */
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
    // One call above the limit is kept, so that the reply is refused as a whole reply would be.
    if (!calls.includes(call) && calls.length <= LIMITS.toolCallsPerReply) calls.push(call);
    mergeCall(call, piece);
  }
  return calls;
}

/** The call that a piece continues; null if it begins another call. */
function callOf(calls: readonly Mutable[], piece: Members): Mutable | null {
  const { id, index } = piece;
  const numbered = index !== undefined && index !== null;
  const call = numbered ? calls.findLast((one) => one["index"] === index) : calls.at(-1);
  if (call === undefined) return null;
  const { name = "" } = functionOf(piece);
  if (typeof id === "string" && id !== "") {
    if (call["id"] === id || typeof call["id"] !== "string" || call["id"] === "") return call;
    // GLM sends another id with every piece of a call: only a name begins a new call.
    return numbered && !name ? call : (calls.findLast((one) => one["id"] === id) ?? null);
  }
  return name && beginsAnother(call, piece, numbered) ? null : call;
}

/** Without ids a whole call after another is a new call: Gemini gives all calls the index 0. */
function beginsAnother(call: Members, piece: Members, numbered: boolean): boolean {
  if (!numbered && functionOf(call)["name"] !== functionOf(piece)["name"]) return true;
  return isWholeCall(piece) && looksWhole(call);
}

function looksWhole(call: Members): boolean {
  const { arguments: args } = functionOf(call);
  if (typeof args !== "string") return args !== undefined;
  const { first, last } = PIECES_OF.get(functionOf(call)) ?? { first: args, last: args };
  return first.startsWith("{") && last.endsWith("}");
}

/** Whether the piece has all arguments of its call. */
function isWholeCall(piece: Members): boolean {
  const { arguments: args } = functionOf(piece);
  return typeof args === "string" ? isWholeObject(args) : args !== undefined && args !== null;
}

function isWholeObject(args: string): boolean {
  return args.startsWith("{") && args.endsWith("}") && isJson(args);
}

/**
 * Completes the arguments of all calls at the end of the stream. Some servers send all arguments so far with each
 * piece, or all of them once more at the end, or `{}` before the pieces. If the joined text is not JSON, the intended
 * one is used.
 */
export function settleCalls({ tool_calls: calls }: Members): void {
  for (const call of Array.isArray(calls) ? calls.filter(isRecord) : []) {
    const called = functionOf(call);
    const { arguments: args } = called;
    const pieces = PIECES_OF.get(called);
    if (typeof args !== "string" || pieces === undefined || pieces.count < 2 || isJson(args)) continue;
    const meant = meantOf(args, pieces);
    if (meant !== null) (called as Mutable)["arguments"] = meant;
  }
}

function meantOf(args: string, { last, grows }: Pieces): string | null {
  const before = args.slice(0, -last.length);
  if (isWholeObject(last) && (grows || before === last)) return last;
  const behind = args.slice("{}".length);
  return args.startsWith("{}") && isWholeObject(behind) ? behind : null;
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

/** The name comes once, or with every piece; the arguments in pieces, or whole. */
function mergeFunction(called: Mutable, piece: Members): void {
  for (const [name, value] of Object.entries(piece)) {
    if (value === null || !isTaken(called, name, value)) continue;
    const known = called[name];
    const areTexts = typeof known === "string" && typeof value === "string";
    if (name === "arguments" && typeof value === "string") called[name] = joinedArguments(called, known, value);
    else if (areTexts && name === "name") called[name] = joinedName(called, known, value);
    else called[name] = value;
  }
}

function joinedArguments(called: Mutable, known: unknown, piece: string): unknown {
  if (piece === "") return known ?? piece;
  const before = PIECES_OF.get(called);
  const next = { first: piece, last: piece, count: 1, grows: true };
  const grows = before?.grows === true && piece.startsWith(before.last);
  PIECES_OF.set(called, before === undefined ? next : { ...next, first: before.first, count: before.count + 1, grows });
  return typeof known === "string" ? known + piece : piece;
}

/** An equal name is a repetition; a different one before any arguments is the rest of the name. */
function joinedName({ arguments: args = "" }: Members, known: string, piece: string): string {
  return piece !== known && args === "" ? known + piece : known;
}

/** The object under a name, created if it is missing. */
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
