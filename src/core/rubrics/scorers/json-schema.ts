/**
 * 1 when the output is JSON that fits a JSON Schema: the option's, else the reference. `{}` asks for JSON and no more. JSON in
 * a fenced block counts, where it is the only block.
 */
import * as z from "zod";
import type { Json, JsonObject } from "../../../contract/json.ts";
import { type SchemaChecker, schemaChecker } from "../../schema/json-schema.ts";
import { type Work, WorkBudgetError } from "../work.ts";
import { readReference, readSaid } from "./json-text.ts";
import { MalformedReferenceError, scorer } from "./scorer.ts";

const Schema = z.record(z.string(), z.json()).superRefine((schema, context) => {
  try {
    schemaChecker(schema);
  } catch (thrown) {
    if (!(thrown instanceof TypeError || thrown instanceof WorkBudgetError)) throw thrown;
    context.addIssue({ code: "custom", message: thrown.message });
  }
});

export const jsonSchema = scorer(z.strictObject({ schema: Schema.optional() }), ({ schema }) => {
  const given = schema && schemaChecker(schema);
  return (output, reference, work) => {
    const check = given ?? checkerOf(readReference(reference), work);
    const said = readSaid(output);
    return said !== undefined && fits(check, said, work) ? 1 : 0;
  };
});

function checkerOf(schema: Json, work: Work): SchemaChecker {
  if (!isObject(schema)) throw new MalformedReferenceError("a JSON Schema is an object");
  return followed(() => schemaChecker(schema, work));
}

/** A schema that refers to nowhere shows when it is used. */
function fits(check: SchemaChecker, value: Json, work: Work): boolean {
  return followed(() => check(value, work).length === 0);
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
