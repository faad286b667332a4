/**
 * How alike two JSON values are: objects by the mean over the keys of either, lists by the mean over their places, texts by
 * `levenshtein`, numbers by `numeric_diff`, all else equal or not. An output that is no JSON scores 0. As autoevals' JSONDiff,
 * which compares values of different kinds as texts; here they are 0.
 */
import * as z from "zod";
import type { Json, JsonObject } from "../../../contract/json.ts";
import type { Work } from "../work.ts";
import { readReference, readSaid } from "./json-text.ts";
import { likeness } from "./levenshtein.ts";
import { closeness } from "./numeric.ts";
import { scorer, withinCharacters } from "./scorer.ts";

export const jsonDiff = scorer(z.strictObject({}), () =>
  withinCharacters((output, reference, work) => {
    const expected = readReference(reference);
    const said = readSaid(output);
    return said === undefined ? 0 : alike(said, expected, work);
  }),
);

function alike(a: Json, b: Json, work: Work): number {
  if (typeof a === "string" && typeof b === "string") return likeness(a, b, work);
  if (typeof a === "number" && typeof b === "number") return closeness(a, b);
  if (Array.isArray(a) && Array.isArray(b)) {
    const longest = Math.max(a.length, b.length);
    return mean(Array.from({ length: longest }, (_, at) => both(a[at], b[at], work)));
  }
  if (isObject(a) && isObject(b)) {
    const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
    return mean(Array.from(keys, (key) => both(own(a, key), own(b, key), work)));
  }
  return a === b ? 1 : 0;
}

function both(a: Json | undefined, b: Json | undefined, work: Work): number {
  return a === undefined || b === undefined ? 0 : alike(a, b, work);
}

function own(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function mean(scores: readonly number[]): number {
  if (scores.length === 0) return 1;
  return scores.reduce((sum, score) => sum + score, 0) / scores.length;
}

function isObject(value: Json): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
