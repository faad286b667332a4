/** Makes the request from the texts in the form, and finds the field that an error of the API belongs to. Pure. */
import type { Json, JsonObject } from "../../../contract/json.ts";
import { findLost } from "../../../contract/lost-json.ts";
import { type Field, type Kind, paramOf, written } from "./fields.ts";

/** The texts of the fields, by the field's param. An absent or empty one means the default. */
export type Written = Readonly<Record<string, string>>;

export interface Built {
  readonly request: JsonObject;
  /** The errors of fields that cannot be sent, by param. */
  readonly wrong: Readonly<Record<string, string>>;
}

interface Asked {
  readonly kind: Kind;
  readonly environment: string;
  readonly fields: readonly Field[];
  readonly written: Written;
}

export function buildRequest({ kind, environment, fields, written: texts }: Asked): Built {
  const wrong: Record<string, string> = {};
  const request: Draft = { ...(kind === "training" && { kind }), environment };
  if (environment === "") wrong["environment"] = "is required";
  for (const field of fields) {
    const text = (texts[paramOf(field)] ?? "").trim();
    if (text === "") {
      if (field.required) wrong[paramOf(field)] = "is required";
      continue;
    }
    const read = readField(field, text);
    if ("wrong" in read) wrong[paramOf(field)] = read.wrong;
    else put(request, placeOf(field), read.value);
  }
  return { request: request as JsonObject, wrong };
}

/** A request while it is made. */
type Draft = { [name: string]: Json | Draft };

/** Rows take the place of the name of a dataset. */
function placeOf({ path }: Field): readonly string[] {
  return path[0] === "dataset" ? ["dataset"] : path;
}

/** A field of its own overrides the same member in an object that was entered as JSON. */
function put(draft: Draft, [name = "", ...inner]: readonly string[], value: Json): void {
  const there = draft[name];
  if (inner.length === 0) {
    draft[name] = isObject(value) && isObject(there) ? { ...value, ...there } : value;
    return;
  }
  const part: Draft = isObject(there) ? { ...there } : {};
  put(part, inner, value);
  draft[name] = part;
}

function isObject(value: unknown): value is Draft {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

type Read = { readonly value: Json } | { readonly wrong: string };

function readField({ kind, options = [], path }: Field, text: string): Read {
  if (kind === "integer" || kind === "number") return readNumber(kind, text);
  if (kind === "dollars") {
    const dollars = Number(text);
    return dollars > 0
      ? { value: Math.round(dollars * 1_000_000) }
      : { wrong: "must be an amount of dollars, such as 2.50" };
  }
  if (kind === "choice") {
    const chosen = options.find((option) => written(option) === text);
    return chosen === undefined ? { wrong: "is not one of the choices" } : { value: chosen as Json };
  }
  if (kind === "pairs") return readPairs(text);
  return kind === "json" ? readJson(text, path) : { value: text };
}

function readNumber(kind: "integer" | "number", text: string): Read {
  const value = Number(text);
  const lost = findLost(text, value);
  if (lost !== null || !Number.isFinite(value)) return { wrong: lost?.message ?? "must be a number" };
  return kind === "integer" && !Number.isInteger(value) ? { wrong: "must be a whole number" } : { value };
}

function readPairs(text: string): Read {
  const pairs: Record<string, string> = {};
  for (const line of text.split("\n").filter((one) => one.trim() !== "")) {
    const at = line.indexOf("=");
    if (at < 1) return { wrong: `“${line}” is not a pair such as branch=main` };
    pairs[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return { value: pairs };
}

function readJson(text: string, path: readonly string[]): Read {
  try {
    const value: Json = JSON.parse(text);
    const lost = findLost(text, value);
    if (lost !== null) return { wrong: lost.message };
    const isWhole = path.length === 1;
    return isWhole && !isObject(value) ? { wrong: "must be a JSON object" } : { value };
  } catch (error) {
    return { wrong: `is not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/**
 * The param of the field that an error belongs to: the field itself, else the nearest one that contains it; null for
 * none.
 */
export function fieldOf(param: string | null, fields: readonly Field[]): string | null {
  if (param === null) return null;
  if (param === "environment") return param;
  const params = fields.map(paramOf);
  const inside = params.filter((one) => param === one || param.startsWith(`${one}.`) || param.startsWith(`${one}[`));
  const around = params.filter((one) => one.startsWith(`${param}.`));
  return inside.sort((a, b) => b.length - a.length)[0] ?? around[0] ?? null;
}
