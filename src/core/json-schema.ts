/**
 * Checks a value against a JSON Schema that was not known before it arrived: a tool's of an MCP server, an author's. By an
 * interpreter, since Workers refuse generated code. Source: JSON Schema, drafts 4, 7, 2019-09 and 2020-12.
 *
 * Invariants. Patterns run in time linear in the text, as RE2 has them: no schema and no value can hang an isolate.
 */
import { format, type Schema, type SchemaDraft, Validator } from "@cfworker/json-schema";
import { RE2JS } from "re2js";
import { findOddity, isRecord, type Json, type JsonObject } from "./json.ts";

/** What is wrong with a value, each with its path; empty when it fits. */
export type SchemaChecker = (value: Json) => readonly string[];

type Patterns = Map<string, RE2JS>;

const DRAFTS: readonly (readonly [RegExp, SchemaDraft])[] = [
  [/draft-04/, "4"],
  [/draft-0[67]/, "7"],
  [/2019-09/, "2019-09"],
];
const MOST_FAULTS = 10;
/** Keywords whose members are schemas under names of the author's. */
const NAMED = /^(properties|patternProperties|\$defs|definitions|dependentSchemas|dependencies)$/;
/** Keywords that hold values. */
const VALUES = /^(const|enum|default|examples)$/;
/** Names are matched by JavaScript's RegExp: one repetition at most, which is linear. */
const ONE_REPETITION = /^[^()*+?{|]*[*+?]?[^()*+?{|]*$/;

/**
 * Throws TypeError for a schema that cannot be followed: a reference to nowhere, a pattern that is none of RE2's. The checker does
 * for a reference without end.
 */
export function schemaChecker(schema: JsonObject): SchemaChecker {
  const dialect = String(schema["$schema"] ?? "");
  const draft = DRAFTS.find(([name]) => name.test(dialect))?.[1] ?? "2020-12";
  const patterns: Patterns = new Map();
  const safe = withSafePatterns(schema, patterns) as Schema;
  const validator = usable(() => new Validator(safe, draft, false));
  return (value) => {
    const oddity = findOddity(value, "");
    if (oddity !== null) return [`${oddity.path} ${oddity.message}`];
    const found = usable(() => knowing(patterns, () => validator.validate(value).errors));
    // Where nothing is allowed, the schema around it says so too, and by name.
    const errors = found.filter(({ keyword }) => keyword !== "false");
    const places = new Set(errors.map(({ keywordLocation }) => keywordLocation));
    // An error of a part is repeated by every schema around it: only what has none beneath it says something.
    const own = errors.filter(({ keywordLocation: place }) => !hasInner(places, place));
    return own.slice(0, MOST_FAULTS).map(({ instanceLocation, error }) => {
      const path = instanceLocation.slice(2).replaceAll("/", ".");
      return path === "" ? error : `${path}: ${error}`;
    });
  };
}

/** The schema with each `pattern` as a format of its own, which `knowing` lends the validator. */
function withSafePatterns(schema: Json, patterns: Patterns): Json {
  if (!isRecord(schema)) {
    return Array.isArray(schema) ? schema.map((item) => withSafePatterns(item, patterns)) : schema;
  }
  const { pattern, ...rest } = schema;
  const members = Object.entries(rest).map(([keyword, value]): [string, Json] => {
    if (VALUES.test(keyword)) return [keyword, value];
    if (keyword === "patternProperties") requireSimple(value);
    return [
      keyword,
      NAMED.test(keyword) ? eachNamed(value, patterns) : withSafePatterns(value, patterns),
    ];
  });
  const safe: JsonObject = Object.fromEntries(members);
  if (typeof pattern !== "string") return pattern === undefined ? safe : { ...safe, pattern };
  const name = `/${pattern}/`;
  patterns.set(
    name,
    usable(() => RE2JS.compile(RE2JS.translateRegExp(pattern))),
  );
  const others = Array.isArray(safe["allOf"]) ? safe["allOf"] : [];
  return { ...safe, allOf: [...others, { format: name }] };
}

function eachNamed(schemas: Json, patterns: Patterns): Json {
  if (!isRecord(schemas)) return schemas;
  const members = Object.entries(schemas).map(([name, schema]): [string, Json] => [
    name,
    withSafePatterns(schema, patterns),
  ]);
  return Object.fromEntries(members);
}

function requireSimple(schemas: Json): void {
  const hard = Object.keys(isRecord(schemas) ? schemas : {}).find(
    (name) => !ONE_REPETITION.test(name),
  );
  if (hard === undefined) return;
  throw new TypeError(
    `the JSON Schema cannot be used: a name of patternProperties takes one repetition and no groups, not ${hard}`,
  );
}

/** The validator's formats are a record of the package's; nobody else runs in between. */
function knowing<T>(patterns: Patterns, run: () => T): T {
  for (const [name, pattern] of patterns) format[name] = (text) => pattern.matcher(text).find();
  try {
    return run();
  } finally {
    for (const name of patterns.keys()) delete format[name];
  }
}

function usable<T>(run: () => T): T {
  try {
    return run();
  } catch (thrown) {
    const why = thrown instanceof RangeError ? "it refers to itself without end" : String(thrown);
    throw new TypeError(`the JSON Schema cannot be used: ${why.split("\n")[0]}`, { cause: thrown });
  }
}

function hasInner(places: ReadonlySet<string>, place: string): boolean {
  for (const other of places) if (other.startsWith(`${place}/`)) return true;
  return false;
}
