/**
 * Parses tool calls in Hermes' format, and defines the grammar of strict ones: `<tool_call>{"name": "add", "arguments":
 * {"a": 3, "b": 4}}</tool_call>`.
 *
 * Invariants: arguments keep the model's JSON text byte for byte, so that rendering a call again gives the sampled
 * text. A reply that vLLM's parser returns entirely as content is also content here.
 */

import { isRecord } from "rollcall/helpers";
import { decode, END, FIRST_PIECE, PIECES } from "./tokenizer.ts";

export interface HermesCall {
  readonly name: string;
  /** The JSON text of an object. */
  readonly arguments: string;
}

export interface HermesReply {
  /** The text before the first call, or null if there is none; the whole text if there are no calls. */
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

/**
 * The last call may lack its end tag, text around the calls is dropped, and one malformed call makes the whole reply
 * content.
 */
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
  if (!isRecord(call) || typeof call["name"] !== "string" || !isRecord(call["arguments"])) {
    return null;
  }
  const members = rawMembers(json);
  return { name: call["name"], arguments: members.get("arguments") ?? "{}" };
}

/** The members of a JSON object with the text of their values. The text was parsed before, so it is valid. */
function rawMembers(json: string): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  for (const member of topLevelParts(json.trim().slice(1, -1))) {
    const [, key, value] = member.match(MEMBER) ?? [];
    if (key !== undefined && value !== undefined) members.set(JSON.parse(key), value);
  }
  return members;
}

/** Splits at the commas outside strings, arrays and objects. */
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

/** A literal; or a value, with patterns for its beginning and for the complete value. */
type Part = string | { readonly begun: RegExp; readonly whole: RegExp };

export interface OfferedTool {
  readonly name: string;
  readonly parameters?: unknown;
}

const NUMBER = { begun: /^-?\d*(\.\d*)?/, whole: /^-?\d+(\.\d+)?$/ };
const STRING = { begun: /^("[^"\\]*"?)?/, whole: /^"[^"\\]*"$/ };
const ANYTHING = { begun: /^[^\n,}]*/, whole: /^.+$/ };

/** `taken`: the length of a complete part. */
type ReadPart = "begun" | "none" | { readonly taken: number };

/**
 * Restricts a strict tool call to Hermes' format, one of the offered names, and its parameters in their order.
 *
 * Invariants: text before a call is free. From the call's first character on, every token must leave a valid beginning
 * of a call; after its end, only the end of the reply may follow. Numbers and strings have their own patterns; other
 * values are any JSON on one line.
 */
export class ToolGrammar {
  readonly #calls: readonly (readonly Part[])[];

  constructor(tools: readonly OfferedTool[]) {
    this.#calls = tools.map(partsOf);
  }

  /** The ids that may follow; null if any may. */
  allowedAfter(answer: readonly number[]): readonly number[] | null {
    const text = decode(answer);
    const start = text.indexOf(CALL_START);
    if (start < 0) return null;
    const call = text.slice(start);
    const places = this.#calls.map((parts) => placeIn(parts, call));
    if (places.includes("whole")) return [END];
    const mayFollow = (piece: string) => this.#calls.some((parts) => placeIn(parts, call + piece) !== "none");
    return PIECES.flatMap((piece, index) => (mayFollow(piece) ? [FIRST_PIECE + index] : []));
  }
}

function partsOf({ name, parameters }: OfferedTool): readonly Part[] {
  const properties = isRecord(parameters) ? parameters["properties"] : undefined;
  const members = Object.entries(isRecord(properties) ? properties : {});
  const values = members.flatMap(([key, schema], at): Part[] => [
    `${at === 0 ? "" : ", "}${JSON.stringify(key)}: `,
    formOf(schema),
  ]);
  const head = `${CALL_START}{"name": ${JSON.stringify(name)}, "arguments": {`;
  return [head, ...values, "}}</tool_call>"];
}

function formOf(schema: unknown): Part {
  const type = isRecord(schema) ? schema["type"] : undefined;
  if (type === "number" || type === "integer") return NUMBER;
  return type === "string" ? STRING : ANYTHING;
}

/** Whether the text is the complete call, a beginning of it, or neither. */
function placeIn(call: readonly Part[], text: string): "whole" | "begun" | "none" {
  let rest = text;
  for (const part of call) {
    const read = typeof part === "string" ? readLiteral(part, rest) : readValue(part, rest);
    if (read === "begun" || read === "none") return read;
    rest = rest.slice(read.taken);
  }
  return rest === "" ? "whole" : "none";
}

function readLiteral(literal: string, text: string): ReadPart {
  if (text.length < literal.length) return literal.startsWith(text) ? "begun" : "none";
  return text.startsWith(literal) ? { taken: literal.length } : "none";
}

function readValue({ begun, whole }: Exclude<Part, string>, text: string): ReadPart {
  const [value = ""] = begun.exec(text) ?? [];
  if (value.length === text.length) return "begun";
  return whole.test(value) ? { taken: value.length } : "none";
}
