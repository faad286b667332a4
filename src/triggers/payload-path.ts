/**
 * Paths of values in a payload (`$.repository.full_name`, `$.updatedRefs[0].newSha`) and of fields in a run
 * (`metadata.sha`). From JSONPath only names and indexes are supported: no wildcards, filters or slices. Reading a
 * value takes one step per part of the path.
 */
import type { Json } from "../contract/json.ts";

export type PathStep = string | number;
export type ReadPath = { readonly ok: true; readonly steps: readonly PathStep[] } | BadPath;
export type BadPath = { readonly ok: false; readonly message: string };

const LONGEST = 200;
const MOST_STEPS = 16;
const DEEPEST_TARGET = 8;
const NAME = /^\.([A-Za-z_][\w-]*)/;
const INDEX = /^\[(0|[1-9]\d{0,4})\]/;
const TARGET_NAME = /^[A-Za-z_][\w-]*$/;

/** Parses a payload path, or says at which character it is invalid. */
export function readPayloadPath(text: string): ReadPath {
  if (text.length > LONGEST) return bad(`has more than ${LONGEST} characters`);
  if (!text.startsWith("$")) return bad("must begin with $");
  const steps: PathStep[] = [];
  for (let at = 1; at < text.length; ) {
    const rest = text.slice(at);
    const [whole = "", name, index] = stepOf(rest);
    if (whole === "") return bad(`at character ${at + 1}: takes .name or [number], no wildcard, filter or slice`);
    if (name === "__proto__") return bad(`at character ${at + 1}: __proto__ is not a valid name`);
    steps.push(name ?? Number(index));
    at += whole.length;
  }
  if (steps.length > MOST_STEPS) return bad(`has more than ${MOST_STEPS} steps`);
  return { ok: true, steps };
}

/** Parses the path of a field in a run: names separated by dots. */
export function readTarget(text: string): { readonly ok: true; readonly names: readonly string[] } | BadPath {
  if (text.length > LONGEST) return bad(`has more than ${LONGEST} characters`);
  const names = text.split(".");
  if (names.length > DEEPEST_TARGET) return bad(`has more than ${DEEPEST_TARGET} names`);
  const wrong = names.find((name) => !TARGET_NAME.test(name) || name === "__proto__");
  if (wrong !== undefined)
    return bad(`${JSON.stringify(wrong)} is not a valid path: use field names separated by dots`);
  return { ok: true, names };
}

/** The value at the path; undefined if there is none. Only the payload's own properties are found. */
export function valueIn(payload: Json, steps: readonly PathStep[]): Json | undefined {
  let value: Json | undefined = payload;
  for (const step of steps) {
    if (value === null || typeof value !== "object") return undefined;
    if (Array.isArray(value) !== (typeof step === "number")) return undefined;
    value = Object.hasOwn(value, step) ? (Reflect.get(value, step) as Json) : undefined;
  }
  return value;
}

function stepOf(rest: string): [whole: string, name?: string | undefined, index?: string | undefined] {
  const name = NAME.exec(rest);
  if (name !== null) return [name[0], name[1]];
  const index = INDEX.exec(rest);
  return index === null ? [""] : [index[0], undefined, index[1]];
}

function bad(message: string): BadPath {
  return { ok: false, message };
}
