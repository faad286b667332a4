/**
 * The scorers that compare JSON: `json_schema`, `json_diff`, `list_contains` and `one_of`. A model's JSON may be in a
 * fenced block; a reference must be JSON alone.
 */
import * as z from "zod";
import { holdsLarge, isRawNumber, parseDigits, parseExactJson } from "../../../contract/exact-json.ts";
import { findOddity, isRecord, type Json, type JsonObject } from "../../../contract/json.ts";
import { IncomparableValueError } from "../../schema/exact-numbers.ts";
import { type SchemaChecker, schemaChecker } from "../../schema/json-schema.ts";
import { type Work, WorkBudgetError } from "../work.ts";
import { closeness } from "./numeric.ts";
import { MalformedReferenceError, scorer, withinCharacters } from "./scorer.ts";
import { likeness, plainText, TEXT_OPTIONS } from "./text-match.ts";

const FENCE = "```";
/** Steps per character of JSON; and with numbers that keep their digits. */
const READ_STEPS = 1;
const READ_EXACTLY_STEPS = 20;

/** The JSON of a model's reply, alone or as its only fenced block; undefined if there is none. */
function readStated(output: string, work: Work): Json | undefined {
  const [, block = "", after, more] = output.split(FENCE, 4);
  const fenced = after !== undefined && more === undefined;
  return parse(output, work) ?? (fenced ? parse(block.replace(/^\w*\s/, ""), work) : undefined);
}

function readReference(reference: string, work: Work): Json {
  const value = parse(reference, work);
  if (value === undefined) throw new MalformedReferenceError("it is not JSON");
  return value;
}

function readReferenceList(reference: string, work: Work): readonly Json[] {
  const value = readReference(reference, work);
  if (!Array.isArray(value)) throw new MalformedReferenceError("it is not a JSON list");
  return value;
}

/** Undefined, which is not JSON, if the text cannot be parsed or is nested too deeply. */
function parse(text: string, work: Work): Json | undefined {
  const spend = (each: number) => work.spend(each * text.length, "reading JSON");
  spend(READ_STEPS);
  try {
    const value = parseDigits(text, () => spend(READ_EXACTLY_STEPS)) as Json;
    return findOddity(value, "") === null ? value : undefined;
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
}

/**
 * 1 if the output is JSON that is valid under a JSON Schema: the option's, else the reference. `{}` accepts any JSON.
 * JSON in a fenced block counts if it is the only block.
 */
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
    const check = given ?? checkerOf(readReference(reference, work), work);
    const said = readStated(output, work);
    return said !== undefined && fits(check, said, work) ? 1 : 0;
  };
});

function checkerOf(schema: Json, work: Work): SchemaChecker {
  if (!isObject(schema)) throw new MalformedReferenceError("a JSON Schema must be an object");
  return followSchema(() => schemaChecker(schema, work));
}

/** A schema with a broken reference throws only when it is used. A value that cannot be compared is not valid. */
function fits(check: SchemaChecker, value: Json, work: Work): boolean {
  return followSchema(() => {
    try {
      return check(value, work).length === 0;
    } catch (thrown) {
      if (thrown instanceof IncomparableValueError) return false;
      throw thrown;
    }
  });
}

function followSchema<T>(run: () => T): T {
  try {
    return run();
  } catch (thrown) {
    if (thrown instanceof TypeError) throw new MalformedReferenceError(thrown.message);
    throw thrown;
  }
}

function isObject(value: Json): value is JsonObject {
  return isRecord(value);
}

/**
 * The similarity of two JSON values: of objects the mean over the keys of both, of lists the mean over their places, of
 * texts `levenshtein`, of numbers `numeric_diff`. All other values, and numbers past 2^53, are equal or not. An output
 * that is not JSON scores 0. As autoevals' JSONDiff, which compares values of different types as texts; here they score
 * 0.
 */
export const jsonDiff = scorer(z.strictObject({}), () =>
  withinCharacters((output, reference, work) => {
    const expected = readReference(reference, work);
    const said = readStated(output, work);
    return said === undefined ? 0 : compareValues(said, expected, work);
  }),
);

function compareValues(a: Json, b: Json, work: Work): number {
  if (typeof a === "string" && typeof b === "string") return likeness(a, b, work);
  if (isLarge(a) || isLarge(b)) return typeof a === typeof b && asText(a) === asText(b) ? 1 : 0;
  if (typeof a === "number" && typeof b === "number") return closeness(a, b);
  if (Array.isArray(a) && Array.isArray(b)) {
    const longest = Math.max(a.length, b.length);
    return mean(Array.from({ length: longest }, (_, at) => compareBoth(a[at], b[at], work)));
  }
  if (isObject(a) && isObject(b)) {
    const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
    return mean(Array.from(keys, (key) => compareBoth(own(a, key), own(b, key), work)));
  }
  return a === b ? 1 : 0;
}

function compareBoth(a: Json | undefined, b: Json | undefined, work: Work): number {
  return a === undefined || b === undefined ? 0 : compareValues(a, b, work);
}

function own(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function mean(scores: readonly number[]): number {
  if (scores.length === 0) return 1;
  return scores.reduce((sum, score) => sum + score, 0) / scores.length;
}

// How much of an expected list is in the output's list. The entries of the two lists are paired so that the sum of the
// pairs' similarities (by `levenshtein`, or exactly) is the largest. The sum is divided by the length of the longer
// list, or of the expected one if `allow_extra` permits more entries. As autoevals' ListContains. Both are JSON lists;
// an output that is not one scores 0.

/** Maximal number of entries: the cost of pairing is cubic in it. An output with more scores 0. */
const ENTRIES = 200;

export const listContains = scorer(
  z.strictObject({
    allow_extra: z.boolean().default(false),
    pairing: z.enum(["levenshtein", "exact"]).default("levenshtein"),
  }),
  ({ allow_extra, pairing }) =>
    withinCharacters((output, reference, work) => {
      const expected = readReferenceList(reference, work).map(entryOf);
      if (expected.length > ENTRIES) {
        throw new MalformedReferenceError(`it has more than ${ENTRIES} entries`);
      }
      const said = readStated(output, work);
      if (!isList(said) || said.length > ENTRIES) return 0;
      const compare = pairing === "exact" ? sameText : likenessOfEntries;
      const entries = said.map(entryOf);
      const scores = expected.map((wanted) => entries.map((entry) => compare(entry, wanted, work)));
      work.spend(pairingSteps(said.length, expected.length), "pairing the entries of two lists");
      const whole = allow_extra ? expected.length : Math.max(expected.length, said.length);
      return whole === 0 ? 1 : bestAssignment(scores) / whole;
    }),
);

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

function asText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The square of the shorter list's length times the longer one's, at about 25 ns. */
function pairingSteps(a: number, b: number): number {
  return (Math.min(a, b) ** 2 * Math.max(a, b)) / 2;
}

interface Entry {
  readonly value: Json;
  readonly text: string;
  readonly holdsLarge: boolean;
}

function entryOf(value: Json): Entry {
  return { value, text: asText(value), holdsLarge: holdsLarge(value) };
}

function sameText(a: Entry, b: Entry): number {
  const isText = typeof a.value === "string";
  // The text "9007199254740993" is not a number.
  if ((a.holdsLarge || b.holdsLarge) && isText !== (typeof b.value === "string")) return 0;
  return a.text === b.text ? 1 : 0;
}

/** Compared as texts; if an entry has a number past 2^53, entries are equal or not. */
function likenessOfEntries(a: Entry, b: Entry, work: Work): number {
  const byDigits = a.holdsLarge || b.holdsLarge;
  if (!byDigits) return likeness(a.text, b.text, work);
  return compareValues(a.value, b.value, work);
}

function isLarge(value: Json): boolean {
  return isRawNumber(value) || (typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER);
}

// Pairs rows with columns so that the sum of the pairs' scores is the largest: the Hungarian method with potentials
// (Kuhn 1955, Munkres 1957), in rows² × columns steps.

/**
 * The largest sum. All rows have the same length; if there are more rows than columns or vice versa, some stay
 * unpaired.
 */
function bestAssignment(scores: readonly (readonly number[])[]): number {
  const rows = scores.length;
  const columns = scores[0]?.length ?? 0;
  if (rows === 0 || columns === 0) return 0;
  const tall = rows > columns;
  const [few, many] = tall ? [columns, rows] : [rows, columns];
  const score = (row: number, column: number) => (tall ? scores[column]?.[row] : scores[row]?.[column]) ?? 0;
  const pairs = assign(few, many, (row, column) => -score(row, column));
  return pairs.reduce((sum, row, column) => sum + (row < 0 ? 0 : score(row, column)), 0);
}

/** The row of each column, −1 for none, with the smallest sum of costs. There are no more rows than columns. */
function assign(rows: number, columns: number, cost: (row: number, column: number) => number): number[] {
  const rowOf = new Array<number>(columns + 1).fill(-1);
  const potentials = {
    rows: new Float64Array(rows),
    columns: new Float64Array(columns + 1),
  };
  for (let row = 0; row < rows; row += 1) augment(row, rowOf, potentials, columns, cost);
  return rowOf.slice(0, columns);
}

interface Potentials {
  readonly rows: Float64Array;
  readonly columns: Float64Array;
}

/** Adds one row: finds a shortest path from it to a free column, then exchanges every pair on the path. */
function augment(
  first: number,
  rowOf: number[],
  potentials: Potentials,
  columns: number,
  cost: (row: number, column: number) => number,
): void {
  const start = columns;
  const slack = new Float64Array(columns).fill(Number.POSITIVE_INFINITY);
  const before = new Int32Array(columns).fill(start);
  const used = new Uint8Array(columns + 1);
  rowOf[start] = first;
  let column = start;
  while (rowOf[column] !== -1) {
    used[column] = 1;
    column = nearest(column, rowOf, potentials, { slack, before, used }, cost);
  }
  while (column !== start) {
    const previous = before[column] ?? start;
    rowOf[column] = rowOf[previous] ?? -1;
    column = previous;
  }
}

interface Search {
  readonly slack: Float64Array;
  readonly before: Int32Array;
  readonly used: Uint8Array;
}

/** The nearest column not yet used; potentials are changed so that the path to it costs nothing. */
function nearest(
  from: number,
  rowOf: readonly number[],
  potentials: Potentials,
  search: Search,
  cost: (row: number, column: number) => number,
): number {
  const { slack, before, used } = search;
  const row = rowOf[from] ?? 0;
  const base = potentials.rows[row] ?? 0;
  let best = { column: 0, slack: Number.POSITIVE_INFINITY };
  for (const [at, known] of slack.entries()) {
    if (used[at] === 1) continue;
    const reduced = cost(row, at) - base - (potentials.columns[at] ?? 0);
    if (reduced < known) before[at] = from;
    slack[at] = Math.min(reduced, known);
    if (Math.min(reduced, known) < best.slack) best = { column: at, slack: slack[at] ?? 0 };
  }
  shift(best.slack, rowOf, potentials, search);
  return best.column;
}

function shift(by: number, rowOf: readonly number[], { rows, columns }: Potentials, { slack, used }: Search): void {
  for (const [at, isUsed] of used.entries()) {
    if (isUsed === 1) {
      const owner = rowOf[at] ?? 0;
      rows[owner] = (rows[owner] ?? 0) + by;
      columns[at] = (columns[at] ?? 0) - by;
    } else if (at < slack.length) slack[at] = (slack[at] ?? 0) - by;
  }
}

/** 1 if the output equals one of the reference's texts, which are a JSON list: `["yes", "y"]`. */
export const oneOf = scorer(z.strictObject(TEXT_OPTIONS), (options) => (output, reference, work) => {
  const said = plainText(output, options, work);
  // A number counts as its text in the reference, or as JavaScript writes it: 18.50, 18.5.
  const list = readReferenceList(reference, work);
  work.spend(READ_EXACTLY_STEPS * reference.length, "reading JSON");
  const texts = [...list, ...(parseExactJson(reference) as readonly Json[])];
  return texts.some((text) => plainText(asText(text), options, work) === said) ? 1 : 0;
});
