/**
 * Checks a value against a JSON Schema that arrives at run time: of an MCP server's tool, or an author's. An
 * interpreter is used, since Workers refuse generated code. Source: JSON Schema, drafts 4, 7, 2019-09 and 2020-12.
 *
 * Invariants. The work of reading the schema and checking a value is counted (json-schema-meter.ts): no schema and no
 * value can block an isolate. Numbers past 2^53 are compared by their digits (exact-numbers.ts). Patterns are RE2's,
 * and no format backtracks (`Formats`).
 */
import { format, type Schema, type SchemaDraft, Validator } from "@cfworker/json-schema";
import * as z from "zod";
import { findOddity, isRecord, type Json, type JsonObject } from "../../contract/json.ts";
import { scoreWork, type Work, WorkBudgetError } from "../rubrics/work.ts";
import { holdsRaw, IncomparableValueError, standIns } from "./exact-numbers.ts";
import { Meter } from "./json-schema-meter.ts";
import { Pattern, translatePattern } from "./pattern.ts";

/**
 * The faults of a value, each with its path; empty if it is valid. Throws `WorkBudgetError` if the check would exceed
 * the budget `work`.
 */
export type SchemaChecker = (value: Json, work?: Work) => readonly string[];

const DRAFTS: readonly (readonly [RegExp, SchemaDraft])[] = [
  [/draft-04/, "4"],
  [/draft-0[67]/, "7"],
  [/2019-09/, "2019-09"],
];
const MOST_FAULTS = 10;
/** Keywords whose members are schemas under the author's names. */
const NAMED = /^(properties|patternProperties|\$defs|definitions|dependentSchemas|dependencies)$/;
/** Keywords that hold values. */
const VALUES = /^(const|enum|default)$/;
/** Names are matched with JavaScript's RegExp: at most one repetition, whose cost is quadratic in the name. */
const ONE_REPETITION = /^[^()*+?{|]*[*+?]?[^()*+?{|]*$/;

/**
 * Throws TypeError for a schema that cannot be used: a broken reference, a pattern that is not RE2's. The checker
 * throws it for an endless reference. Throws `WorkBudgetError` for a schema that is too large.
 */
export function schemaChecker(schema: JsonObject, work: Work = scoreWork()): SchemaChecker {
  refuseOdd(schema);
  const check = holdsRaw(schema) ? null : doubleChecker(schema, work);
  return (value, given = scoreWork()) => {
    if (check !== null && (findOddity(value, "") !== null || !holdsRaw(value))) return check(value, given);
    const { replaced, name } = usable(() => standIns(schema, value, given));
    const [ownSchema, ownValue = null] = replaced;
    return doubleChecker(ownSchema as JsonObject, given)(ownValue, given).map(name);
  };
}

function refuseOdd(schema: JsonObject): void {
  const oddity = findOddity(schema, "");
  if (oddity !== null) throw unusable(`${oddity.path} ${oddity.message}`);
}

/** The checker for a schema and values whose numbers are all doubles. */
function doubleChecker(schema: JsonObject, work: Work): SchemaChecker {
  const dialect = String(schema["$schema"] ?? "");
  const draft = DRAFTS.find(([name]) => name.test(dialect))?.[1] ?? "2020-12";
  const meter = new Meter(work);
  const reader = new SchemaReader(meter);
  const validator = usable(() => {
    const metered = reader.subschema(schema, 0) as Schema;
    return new Validator(metered, draft, false);
  });
  return (value, given = scoreWork()) => {
    const odd = findOddity(value, "");
    if (odd !== null) return [`${odd.path} ${odd.message}`];
    const metered = meter.begin(value, given);
    const found = usable(() => reader.formats.lend(() => validator.validate(metered).errors));
    return firstFaults(found);
  };
}

interface Fault {
  readonly keyword: string;
  readonly keywordLocation: string;
  readonly instanceLocation: string;
  readonly error: string;
}

/** Only the innermost errors: every enclosing schema repeats the error of its part. */
function firstFaults(found: readonly Fault[]): string[] {
  const faults: string[] = [];
  // An error of the schema `false` is also reported by the enclosing schema, with the name.
  const errors = found.filter(({ keyword }) => keyword !== "false");
  for (const [at, { keywordLocation, instanceLocation, error }] of errors.entries()) {
    if (errors[at + 1]?.keywordLocation.startsWith(`${keywordLocation}/`)) continue;
    const path = instanceLocation.slice(2).replaceAll("/", ".");
    faults.push(path === "" ? error : `${path}: ${error}`);
    if (faults.length === MOST_FAULTS) break;
  }
  return faults;
}

/** Makes the validator's copy of the schema: it counts visits, and has a format for each `pattern`. */
class SchemaReader {
  readonly formats: Formats;
  readonly #meter: Meter;

  constructor(meter: Meter) {
    this.#meter = meter;
    this.formats = new Formats(meter);
  }

  /** `path`: the length of the pointer to it, in characters. */
  subschema(schema: Json, path: number): unknown {
    if (Array.isArray(schema)) {
      return schema.map((item, at) => this.subschema(item, path + String(at).length + 1));
    }
    if (!isRecord(schema)) return schema;
    const { pattern, ...rest } = schema as JsonObject;
    const members = Object.entries(rest).map(([keyword, value]): [string, unknown] => [
      keyword,
      this.#member(keyword, value, path + keyword.length + 1),
    ]);
    const own = Object.fromEntries(members) as JsonObject;
    this.formats.use(own["format"]);
    return this.#meter.schema(this.#withPattern(own, pattern), own, path);
  }

  #member(keyword: string, value: Json, path: number): unknown {
    if (VALUES.test(keyword) || (keyword === "examples" && Array.isArray(value))) return value;
    if (keyword === "patternProperties") requireSimple(value);
    if (!NAMED.test(keyword) || !isRecord(value)) return this.subschema(value, path);
    const members = Object.entries(value as JsonObject).map(([name, schema]): [string, unknown] => [
      name,
      this.subschema(schema, path + name.length + 1),
    ]);
    return Object.fromEntries(members);
  }

  #withPattern(schema: JsonObject, pattern: Json | undefined): JsonObject {
    if (pattern === undefined) return schema;
    if (typeof pattern !== "string") return { ...schema, pattern };
    const { allOf } = schema;
    const format = this.formats.addPattern(pattern);
    return { ...schema, allOf: [...(Array.isArray(allOf) ? allOf : []), { format }] };
  }
}

function requireSimple(schemas: Json): void {
  const hard = Object.keys(isRecord(schemas) ? schemas : {}).find((name) => !ONE_REPETITION.test(name));
  if (hard === undefined) return;
  throw unusable(`a name of patternProperties takes one repetition and no groups, not ${hard}`);
}

function usable<T>(run: () => T): T {
  try {
    return run();
  } catch (thrown) {
    if (thrown instanceof WorkBudgetError || thrown instanceof IncomparableValueError) throw thrown;
    const endless = "it refers to itself endlessly, or the value has too many errors";
    throw unusable(thrown instanceof RangeError ? endless : String(thrown), thrown);
  }
}

function unusable(why: string, cause?: unknown): TypeError {
  return new TypeError(`the JSON Schema cannot be used: ${why.split("\n", 1)[0]}`, { cause });
}

/**
 * The formats of one JSON Schema: the validator's formats that it names, and one for each of its patterns.
 *
 * Invariants. Each takes time linear in the text (tested with hostile texts), and that is counted. The validator's
 * formats are a global record of its package. Our formats are in it only while one value is checked; the check is
 * synchronous, so no other code can see them.
 */
type Format = (text: string) => boolean;

/** Characters per step: of a split, or of a regular expression without backtracking. */
const CHARACTERS = 2;

/**
 * The package's own expression for a URL may backtrack exponentially. This one is split into parts, each of which
 * matches a text in only one way.
 */
const LABEL = /[a-z\u{a1}-\u{ffff}0-9]+(?:-[a-z\u{a1}-\u{ffff}0-9]+)*/u.source;
const PUBLIC_IP =
  /(?!10(?:\.\d{1,3}){3})(?!127(?:\.\d{1,3}){3})(?!169\.254(?:\.\d{1,3}){2})(?!192\.168(?:\.\d{1,3}){2})(?!172\.(?:1[6-9]|2\d|3[0-1])(?:\.\d{1,3}){2})(?:[1-9]\d?|1\d\d|2[01]\d|22[0-3])(?:\.(?:1?\d{1,2}|2[0-4]\d|25[0-5])){2}\.(?:[1-9]\d?|1\d\d|2[0-4]\d|25[0-4])/
    .source;
const HOST_AND_PORT = new RegExp(
  `^(?:${PUBLIC_IP}|${LABEL}(?:\\.${LABEL})*\\.[a-z\\u{a1}-\\u{ffff}]{2,})(?::\\d{2,5})?$`,
  "iu",
);

const SCHEME = /^(?:https?|ftp):\/\//i;

const OWN: Readonly<Record<string, Format>> = { url: isUrl };

class Formats {
  readonly #meter: Meter;
  readonly #own = new Map<string, Format>();

  constructor(meter: Meter) {
    this.#meter = meter;
  }

  /** Adds the `format` of a schema; an unknown format allows everything. */
  use(name: Json | undefined): void {
    if (typeof name !== "string" || !Object.hasOwn(format, name) || this.#own.has(name)) return;
    const known = OWN[name] ?? format[name];
    if (known === undefined) return;
    this.#own.set(name, (text) => {
      this.#meter.spend(text.length / CHARACTERS);
      return known(text);
    });
  }

  /** The name of the format for a pattern. */
  addPattern(source: string): string {
    const name = `/${source}/`;
    if (!this.#own.has(name)) {
      const pattern = new Pattern(translatePattern(source), this.#meter.work);
      this.#own.set(name, (text) => pattern.isIn(text, this.#meter.work));
    }
    return name;
  }

  /** Adds these formats to the validator's while `run` runs. */
  lend<T>(run: () => T): T {
    const before = new Map([...this.#own.keys()].map((name) => [name, format[name]]));
    for (const [name, own] of this.#own) format[name] = own;
    try {
      return run();
    } finally {
      for (const [name, known] of before) {
        if (known === undefined) delete format[name];
        else format[name] = known;
      }
    }
  }
}

/** Whether it is an http, https or ftp URL whose host has a public form. */
function isUrl(text: string): boolean {
  const scheme = SCHEME.exec(text)?.[0];
  if (scheme === undefined || /\s/.test(text)) return false;
  // A user name and a path may have any character: one "@" with a host after it is enough.
  const parts = text.slice(scheme.length).split("@");
  return parts.some((part, at) => {
    const nameless = at === 1 && parts[0] === "";
    const [host = "", path] = part.split("/", 2);
    const ends = path !== undefined || at === parts.length - 1;
    return ends && !nameless && HOST_AND_PORT.test(host);
  });
}

/** The JSON Schema of a schema's input, for readers of the API. Parts that JSON Schema cannot express are left open. */
export function inputSchema(schema: z.ZodType): Record<string, unknown> {
  return z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
}
