/**
 * The arguments of a call, a text that should be a JSON object, as the object that Anthropic's messages have, and back.
 * Models and engines mostly write JSON with spaces, as Python does; another spelling is carried (carried.ts). What is
 * not an object is wrapped, as Anthropic's documentation of fine-grained tool streaming proposes.
 */
import { isRawNumber, parseKeepingNumbers } from "../../contract/exact-json.ts";
import { isRecord, type Json, type JsonObject } from "../../contract/json.ts";
import { objectIn } from "./carried.ts";

const INVALID = "INVALID_JSON";

export function inputOf(text: string): JsonObject {
  return objectIn(text, parseKeepingNumbers) ?? { [INVALID]: text };
}

/** The text that an input stands for, unless another one is carried. */
export function argumentsOf(input: Readonly<Record<string, unknown>>): string {
  const names = Object.keys(input);
  const wrapped = input[INVALID];
  return names.length === 1 && typeof wrapped === "string" ? wrapped : spacedJson(input as JsonObject);
}

function spacedJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(", ")}]`;
  if (!isRecord(value) || isRawNumber(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${spacedJson(member)}`);
  return `{${members.join(", ")}}`;
}
