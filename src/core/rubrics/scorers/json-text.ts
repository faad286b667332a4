/** JSON in texts: a model's, which may stand in a fenced block, and a reference's, which may not be anything else. */
import { findOddity, type Json } from "../../../contract/json.ts";
import { MalformedReferenceError } from "./scorer.ts";

const FENCE = "```";

/** The JSON that a model said, alone or as the one fenced block of its reply; undefined when there is none. */
export function readSaid(output: string): Json | undefined {
  const [, block = "", after, more] = output.split(FENCE, 4);
  const fenced = after !== undefined && more === undefined;
  return parse(output) ?? (fenced ? parse(block.replace(/^\w*\s/, "")) : undefined);
}

export function readReference(reference: string): Json {
  const value = parse(reference);
  if (value === undefined) throw new MalformedReferenceError("it is no JSON");
  return value;
}

export function readReferenceList(reference: string): readonly Json[] {
  const value = readReference(reference);
  if (!Array.isArray(value)) throw new MalformedReferenceError("it is no JSON list");
  return value;
}

/** Undefined, which no JSON is, for what cannot be parsed, or is nested deeper than any reader follows. */
function parse(text: string): Json | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return findOddity(value, "") === null ? value : undefined;
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
}
