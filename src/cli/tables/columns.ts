/**
 * Which columns of a table become which fields of the task rows: `--columns question=problem,answer=solution.final`.
 * The source of a field is a column, or a part of a nested one: `answers.text`, `choices.0`.
 */
import { isUtf8 } from "node:buffer";
import { usageError } from "../exit.ts";

export type Row = Record<string, unknown>;

export interface Piece {
  readonly rows: readonly Row[];
  /** The position after these rows: an offset in bytes, or in rows of a Parquet file. */
  readonly next: number;
}

interface Column {
  readonly field: string;
  readonly source: string;
}

/** Null: every column, under its own name. */
export type Columns = readonly Column[] | null;

const MAX_COLUMNS = 200;
const MAX_NAMED = 60;
/** Values of files are JSON or the types of a schema; a deeper value is refused. */
const MAX_DEPTH = 64;

/** `given`: the values of `--columns`, each with one or more of `field=source`, or `field` for both. */
export function parseColumns(given: readonly string[]): Columns {
  if (given.length === 0) return null;
  const columns = given.flatMap((text) => text.split(",")).map(columnOf);
  if (columns.length > MAX_COLUMNS) throw usageError(`--columns: at most ${MAX_COLUMNS} columns`, "columns");
  const fields = columns.map(({ field }) => field);
  const twice = fields.find((field, at) => fields.indexOf(field) < at);
  if (twice !== undefined) throw usageError(`--columns: the field ${twice} is given twice`, "columns");
  return columns;
}

function columnOf(text: string): Column {
  const [, field, source = field] = /^\s*([^=]+?)\s*(?:=\s*(.*?)\s*)?$/s.exec(text) ?? [];
  if (field === undefined || source === undefined || source === "") {
    throw usageError(`--columns: ${JSON.stringify(text)} is not FIELD=COLUMN`, "columns");
  }
  return { field, source };
}

/** Throws a usage error that lists `known` if a source is none of them. A number after a name is an item of a list. */
export function checkColumns(columns: Columns, known: readonly string[], table: string): void {
  const names = new Set(known);
  const missing = columns?.find(({ source }) => !names.has(source) && !names.has(source.replace(/(\.\d+)+$/, "")));
  if (missing === undefined) return;
  const listed = known.slice(0, MAX_NAMED).join(", ") + (known.length > MAX_NAMED ? ", …" : "");
  throw usageError(`--columns: ${table} has no column ${missing.source}; it has ${listed}`, "columns");
}

/** The columns of `topLevel` that the sources need; undefined: all. */
export function columnsToRead(columns: Columns, topLevel: readonly string[]): string[] | undefined {
  if (columns === null) return undefined;
  return topLevel.filter((name) => {
    return columns.some(({ source }) => source === name || source.startsWith(`${name}.`));
  });
}

/** The names of the columns of these rows, those of nested objects with dots. */
export function namesIn(rows: readonly Row[]): string[] {
  const names = new Set<string>();
  const add = (row: object, before: string, depth: number) => {
    for (const [name, value] of Object.entries(row)) {
      names.add(before + name);
      if (isObject(value) && depth < MAX_DEPTH) add(value, `${before}${name}.`, depth + 1);
    }
  };
  for (const row of rows) add(row, "", 0);
  return [...names];
}

/** The task row of a row of the table. `table` names the table in errors. */
export function taskRow(columns: Columns, row: Row, table: string): Row {
  const entries =
    columns === null
      ? Object.entries(row)
      : columns.map(({ field, source }): [string, unknown] => [field, valueAt(row, source)]);
  return Object.fromEntries(entries.map(([field, value]) => [field, jsonValue(value, field, table)]));
}

/** Null if the row, or a nested value on the way, has no such part. */
function valueAt(value: unknown, path: string): unknown {
  if (typeof value !== "object" || value === null) return null;
  if (Object.hasOwn(value, path)) return Reflect.get(value, path);
  for (let dot = path.indexOf("."); dot >= 0; dot = path.indexOf(".", dot + 1)) {
    const name = path.slice(0, dot);
    if (Object.hasOwn(value, name)) return valueAt(Reflect.get(value, name), path.slice(dot + 1));
  }
  return null;
}

/**
 * The value as JSON has it. A date becomes its ISO text, and a whole number that a double does not hold becomes its
 * digits. NaN and infinities become null: JSON has none.
 */
function jsonValue(value: unknown, field: string, table: string, depth = 0): unknown {
  if (depth > MAX_DEPTH) throw usageError(`${table}: the column of ${field} is nested too deeply`, "columns");
  if (value instanceof Uint8Array) return textOf(value, field, table);
  const inner = (part: unknown) => jsonValue(part, field, table, depth + 1);
  if (Array.isArray(value)) return value.map(inner);
  if (isTypedArray(value)) return Array.from(value, inner);
  if (!isObject(value) || value instanceof Date) return scalarOf(value);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, inner(part)]));
}

function scalarOf(value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  return value ?? null;
}

/** Some writers do not mark text as text. */
function textOf(bytes: Uint8Array, field: string, table: string): string {
  if (isUtf8(bytes)) return Buffer.from(bytes).toString();
  const advice = "a task row is JSON and cannot hold it: choose other columns with --columns";
  throw usageError(`${table}: the column of ${field} holds binary data; ${advice}`, "columns");
}

function isTypedArray(value: unknown): value is Iterable<number | bigint> {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}
