/**
 * Tool calls as rows for training carry them: the arguments an object, as chat templates and TRL take them, where
 * OpenAI's wire has a text.
 *
 * Invariant. What a reader of the row gets is what the model wrote, or there is no row: a text that is no object, or that an
 * object could hold only in part, is told with its reason and never repaired. A number is its value: 10.0 is written 10.
 */
import { findOddity, isRecord, type Json, type JsonObject } from "./json.ts";
import type { ToolCall } from "./messages.ts";

export const CALL_FAULTS = {
  invalid_json: "the arguments of a call are no JSON",
  not_an_object: "the arguments of a call are JSON, but no object",
  inexact_number: "a number in the arguments of a call is past what JSON's readers keep (2^53)",
  no_unicode: "a text in the arguments of a call is no Unicode: half a surrogate pair",
  too_deep: "the arguments of a call are nested over 100 deep, or have the name __proto__",
} as const;
export type CallFault = keyof typeof CALL_FAULTS;

/** A call with its arguments as an object. */
export interface DecodedCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: JsonObject };
}

/** The call, or why its arguments cannot stand in a row. */
export function decodeCall(call: ToolCall): DecodedCall | CallFault {
  const { name, arguments: text } = call.function;
  const decoded = decode(text);
  if (typeof decoded === "string") return decoded;
  return { ...call, function: { name, arguments: decoded } };
}

function decode(text: string): JsonObject | CallFault {
  let exact = true;
  let unicode = true;
  // The third argument of a reviver is what stood in the text; engines without it leave it out.
  const look = (key: string, value: Json, context?: { readonly source?: string }): Json => {
    if (typeof value === "number") exact &&= isExact(value, context?.source ?? "");
    unicode &&= key.isWellFormed() && (typeof value !== "string" || value.isWellFormed());
    return value;
  };
  let value: Json;
  try {
    value = JSON.parse(text, look) as Json;
  } catch (error) {
    if (error instanceof SyntaxError) return "invalid_json";
    // Nested deeper than the parser goes.
    if (error instanceof RangeError) return "too_deep";
    throw error;
  }
  if (!isObject(value)) return "not_an_object";
  if (!exact) return "inexact_number";
  if (!unicode) return "no_unicode";
  return findOddity(value, "") === null ? value : "too_deep";
}

function isObject(value: Json): value is JsonObject {
  return isRecord(value);
}

/** Whether every reader of the number as we write it has what the text says. */
function isExact(value: number, source: string): boolean {
  const fraction = /[.eE]/.test(source);
  return fraction ? Number.isFinite(value) : Number.isSafeInteger(value);
}
