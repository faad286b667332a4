/**
 * What a strict tool call may still be written as: Hermes' form, a name that was offered, its parameters in their order.
 *
 * Invariants. Text before a call is free. From the call's first character on every token must leave a beginning of some call; after
 * its end nothing but the end of the reply is left. Numbers and strings have their own form, other values any JSON in one line.
 */
import { isRecord } from "../../src/contract/json.ts";
import { CALL_START } from "./hermes.ts";
import { decode } from "./tokenizer.ts";
import { END, FIRST_NIBBLE, FIRST_PIECE, PIECES, VOCABULARY_SIZE } from "./vocabulary.ts";

/** A literal; or a value: how it may begin, and what it is when whole. */
type Part = string | { readonly begun: RegExp; readonly whole: RegExp };

export interface OfferedTool {
  readonly name: string;
  readonly parameters?: unknown;
}

const NUMBER = { begun: /^-?\d*(\.\d*)?/, whole: /^-?\d+(\.\d+)?$/ };
const STRING = { begun: /^("[^"\\]*"?)?/, whole: /^"[^"\\]*"$/ };
const ANYTHING = { begun: /^[^\n,}]*/, whole: /^.+$/ };

export class ToolGrammar {
  readonly #calls: readonly (readonly Part[])[];

  constructor(tools: readonly OfferedTool[]) {
    this.#calls = tools.map(callOf);
  }

  /** The ids that may follow; null where any may. */
  allowedAfter(answer: readonly number[]): readonly number[] | null {
    const text = decode(answer);
    const start = text.indexOf(CALL_START);
    if (start < 0) return null;
    const said = text.slice(start);
    const places = this.#calls.map((call) => placeIn(call, said));
    if (places.includes("whole")) return [END];
    const allowed = [];
    for (let id = FIRST_PIECE; id < Math.min(FIRST_NIBBLE, VOCABULARY_SIZE); id += 1) {
      const longer = said + (PIECES[id - FIRST_PIECE] ?? "");
      if (this.#calls.some((call) => placeIn(call, longer) !== "none")) allowed.push(id);
    }
    return allowed;
  }
}

function callOf({ name, parameters }: OfferedTool): readonly Part[] {
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

/** Whether the text is the call, a beginning of it, or neither. */
function placeIn(call: readonly Part[], text: string): "whole" | "begun" | "none" {
  let rest = text;
  for (const part of call) {
    const read = typeof part === "string" ? readLiteral(part, rest) : readValue(part, rest);
    if (read === "begun" || read === "none") return read;
    rest = rest.slice(read.taken);
  }
  return rest === "" ? "whole" : "none";
}

interface WholePart {
  /** Characters of the text. */
  readonly taken: number;
}
type ReadPart = "begun" | "none" | WholePart;

function readLiteral(literal: string, text: string): ReadPart {
  if (text.length < literal.length) return literal.startsWith(text) ? "begun" : "none";
  return text.startsWith(literal) ? { taken: literal.length } : "none";
}

function readValue({ begun, whole }: Exclude<Part, string>, text: string): ReadPart {
  const [value = ""] = begun.exec(text) ?? [];
  if (value.length === text.length) return "begun";
  return whole.test(value) ? { taken: value.length } : "none";
}
