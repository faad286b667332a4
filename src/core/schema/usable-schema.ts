/**
 * Prepares the JSON Schema of a foreign tool for a model's endpoint: endpoints refuse a whole request because of one
 * invalid schema. Source: the meta-schemas of JSON Schema, drafts 4 to 2020-12.
 *
 * Invariants. A schema is refused only if no draft allows it: unknown keywords and formats stay. A keyword that is null
 * is left out (servers in Go write unset lists as null). A schema may refer to itself at a deeper place, as trees do;
 * one that refers to itself at the same place is endless, and refused.
 */
import { findOddity, isRecord, type Json, type JsonObject } from "../../contract/json.ts";
import { exceedsUtf8 } from "../size.ts";

type Kind = "schema" | "schemas" | "items" | "named" | "names" | "values" | "type" | "reference";

const KINDS: Readonly<Record<string, Kind>> = {
  ...of("schema", [
    "additionalProperties",
    "additionalItems",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
  ]),
  ...of("schema", ["unevaluatedItems", "unevaluatedProperties"]),
  ...of("schemas", ["anyOf", "oneOf", "allOf", "prefixItems"]),
  ...of("named", ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]),
  ...{ items: "items", required: "names", enum: "values", type: "type", $ref: "reference" },
};
const TYPES: readonly Json[] = ["object", "array", "string", "number", "integer", "boolean", "null"];
/** Keywords that apply their schemas to the same value. */
const IN_PLACE = ["anyOf", "oneOf", "allOf", "not", "if", "then", "else"];

/**
 * A copy with `type: "object"`, since arguments are an object. Throws TypeError with what is wrong, also if it has more
 * than `bytes` of JSON.
 */
export function usableSchema(given: unknown, bytes: number): JsonObject {
  if (!isRecord(given)) throw new TypeError(`it is ${given === null ? "null" : nounOf(given)}, not an object`);
  const odd = findOddity(given as JsonObject, "");
  if (odd !== null) throw new TypeError(`${odd.path} ${odd.message}`);
  const text = JSON.stringify(given);
  if (exceedsUtf8(text, bytes)) throw new TypeError(`it is over ${bytes} bytes`);
  const { type = "object", ...rest } = readSchema(JSON.parse(text), "") as JsonObject;
  if (type !== "object" && !(Array.isArray(type) && type.includes("object"))) {
    throw new TypeError(`its type is ${JSON.stringify(type)}, not "object"`);
  }
  const schema = { type: "object", ...rest };
  const names = namesIn(schema);
  for (const [node, path] of nodesOf(schema)) {
    if (target(schema, names, node) !== null) continue;
    throw new TypeError(`${at(path)} refers to ${String(node["$ref"]).slice(0, 100)}, which does not exist`);
  }
  refuseEndless(schema, names);
  return schema;
}

function readSchema(schema: Json, path: string): Json {
  if (typeof schema === "boolean") return schema;
  if (!isRecord(schema)) throw new TypeError(`${at(path)} is ${nounOf(schema)}, not a schema`);
  const members = Object.entries(schema as JsonObject).flatMap(([keyword, value]): [string, Json][] => {
    const kind = Object.hasOwn(KINDS, keyword) ? KINDS[keyword] : undefined;
    if (kind === undefined) return [[keyword, value]];
    return value === null ? [] : [[keyword, readKeyword(kind, value, `${path}/${keyword}`)]];
  });
  return Object.fromEntries(members);
}

function readKeyword(kind: Kind, value: Json, path: string): Json {
  switch (kind) {
    case "schema":
      return readSchema(value, path);
    case "schemas":
      return listOf(value, path).map((item, index) => readSchema(item, `${path}/${index}`));
    case "items":
      return Array.isArray(value) ? readKeyword("schemas", value, path) : readSchema(value, path);
    case "named": {
      if (!isRecord(value)) throw new TypeError(`${at(path)} is ${nounOf(value)}, not an object of schemas`);
      const named = Object.entries(value as JsonObject);
      return Object.fromEntries(named.map(([name, item]) => [name, readSchema(item, `${path}/${name}`)]));
    }
    case "names":
      if (listOf(value, path).every((item) => typeof item === "string")) return value;
      throw new TypeError(`${at(path)} is not a list of names`);
    case "values":
      return listOf(value, path);
    case "type":
      if ((Array.isArray(value) ? value : [value]).every((item) => TYPES.includes(item))) return value;
      throw new TypeError(`${at(path)} is not a type: ${JSON.stringify(value).slice(0, 40)}`);
    case "reference":
      if (typeof value === "string") return value;
      throw new TypeError(`${at(path)} is ${nounOf(value)}, not a reference`);
  }
}

function listOf(value: Json, path: string): readonly Json[] {
  if (Array.isArray(value)) return value;
  throw new TypeError(`${at(path)} is ${nounOf(value)}, not a list`);
}

/** All schemas within a schema, including itself, with their paths. */
function nodesOf(schema: Json, path = ""): [JsonObject, string][] {
  if (!isRecord(schema)) return [];
  const node = schema as JsonObject;
  const inner = Object.entries(node).flatMap(([keyword, value]) => {
    const kind = Object.hasOwn(KINDS, keyword) ? KINDS[keyword] : undefined;
    const below = `${path}/${keyword}`;
    if (kind === "schema" || (kind === "items" && !Array.isArray(value))) return nodesOf(value, below);
    if (kind !== "schemas" && kind !== "items" && kind !== "named") return [];
    return Object.entries(value as JsonObject).flatMap(([name, item]) => nodesOf(item, `${below}/${name}`));
  });
  return [[node, path], ...inner];
}

type Names = ReadonlyMap<string, JsonObject>;

/** Schemas by `$id`, and by `$anchor` with a # in front. */
function namesIn(schema: JsonObject): Names {
  const names = new Map<string, JsonObject>([["#", schema]]);
  for (const [node] of nodesOf(schema)) {
    const { $id, id, $anchor } = node;
    for (const name of [$id, id]) if (typeof name === "string") names.set(name, node).set(name.replace(/#$/, ""), node);
    if (typeof $anchor === "string") names.set(`#${$anchor}`, node);
  }
  return names;
}

/** The target of a schema's `$ref`: undefined if it has none, null if the target does not exist. */
function target(root: JsonObject, names: Names, { $ref }: JsonObject): Json | null | undefined {
  if (typeof $ref !== "string") return undefined;
  const named = names.get($ref);
  if (named !== undefined) return named;
  if (!$ref.startsWith("#/")) return null;
  return $ref
    .slice("#/".length)
    .split("/")
    .reduce<Json>((value, step) => memberOf(value, nameIn(step)) ?? null, root);
}

function memberOf(value: Json, name: string): Json | undefined {
  if (value === null || typeof value !== "object" || !Object.hasOwn(value, name)) return undefined;
  return (value as JsonObject)[name];
}

/** Decodes a step of a JSON pointer in a URL. */
function nameIn(step: string): string {
  return (URI_ESCAPES.test(step) ? decodeStep(step) : step).replaceAll("~1", "/").replaceAll("~0", "~");
}

const URI_ESCAPES = /%[\da-f]{2}/i;

function decodeStep(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch (thrown) {
    if (thrown instanceof URIError) return step;
    throw thrown;
  }
}

function refuseEndless(root: JsonObject, names: Names): void {
  const done = new Set<Json>();
  const open = new Set<Json>();
  const visit = (schema: Json): void => {
    if (!isRecord(schema) || done.has(schema as Json)) return;
    if (open.has(schema as Json)) throw new TypeError("it refers to itself endlessly");
    const node = schema as JsonObject;
    open.add(node);
    const next = [target(root, names, node), ...IN_PLACE.flatMap((keyword) => node[keyword])];
    for (const one of next) if (one !== undefined && one !== null) visit(one);
    open.delete(node);
    done.add(node);
  };
  for (const [node] of nodesOf(root)) visit(node);
}

function of(kind: Kind, keywords: readonly string[]): Record<string, Kind> {
  return Object.fromEntries(keywords.map((keyword) => [keyword, kind]));
}

function at(path: string): string {
  return path === "" ? "it" : path.slice(1, 100);
}

function nounOf(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "missing";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
