/** The rows of a run: any object, or OpenAI's form of it, `{"item": …}`. */
import type { JsonObject } from "rollcall";
import * as z from "zod";
import { memberAt, type Path } from "./template.ts";

const Row = z.record(z.string(), z.json());

/**
 * `named`: members of the item that the run's templates name; a row without one is refused before anything is sampled.
 * `prompt`: the path of the prompt in the item, if it is not under that name.
 */
export function rowSchema(named: readonly Path[], prompt: Path | null): z.ZodType<JsonObject, JsonObject> {
  return Row.superRefine((row, context) => {
    const wrapped = itemOf(row) !== row;
    if (wrapped && Object.hasOwn(row, "sample")) {
      const message = "replies that come with the rows are not scored: leave them out";
      context.addIssue({ code: "custom", path: ["sample"], message });
    }
    for (const path of prompt === null ? named : [...named, prompt]) {
      if (memberAt(itemOf(row), path) !== undefined) continue;
      const full = [...(wrapped ? ["item"] : []), ...path];
      const message = `required: the arguments name item.${path.join(".")}`;
      context.addIssue({ code: "custom", path: full, message });
    }
  }).transform((row): JsonObject => {
    const item = itemOf(row);
    return prompt === null ? item : { ...item, prompt: memberAt(item, prompt) ?? null };
  });
}

function itemOf(row: JsonObject): JsonObject {
  const { item } = row;
  return isObject(item) ? item : row;
}

function isObject(value: JsonObject[string] | undefined): value is JsonObject {
  return value !== undefined && value !== null && typeof value === "object" && !Array.isArray(value);
}
