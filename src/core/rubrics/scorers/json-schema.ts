/**
 * 1 when the output is JSON that fits a JSON Schema: the option's, else the reference. `{}` asks for JSON and no more. JSON in
 * a fenced block counts, where it is the only block.
 */
import * as z from "zod";
import type { Json, JsonObject } from "../../json.ts";
import { type SchemaChecker, schemaChecker } from "../../json-schema.ts";
import { readReference, readSaid } from "./json-text.ts";
import { MalformedReferenceError, scorer } from "./scorer.ts";

export const jsonSchema = scorer(
  z.strictObject({ schema: z.record(z.string(), z.json()).optional() }),
  ({ schema }) => {
    const given = schema && schemaChecker(schema);
    return (output, reference) => {
      const check = given ?? checkerOf(readReference(reference));
      const said = readSaid(output);
      return said !== undefined && faults(check, said) === 0 ? 1 : 0;
    };
  },
);

function checkerOf(schema: Json): SchemaChecker {
  if (!isObject(schema)) throw new MalformedReferenceError("a JSON Schema is an object");
  return followed(() => schemaChecker(schema));
}

/** A schema that refers to nowhere shows when it is used. */
function faults(check: SchemaChecker, value: Json): number {
  return followed(() => check(value).length);
}

function followed<T>(run: () => T): T {
  try {
    return run();
  } catch (thrown) {
    if (thrown instanceof TypeError) throw new MalformedReferenceError(thrown.message);
    throw thrown;
  }
}

function isObject(value: Json): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
