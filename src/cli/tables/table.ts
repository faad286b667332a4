/**
 * Reads the rows of a table file: Parquet, JSON Lines, CSV, or TSV. Rows come in pieces, and each piece has the position
 * from which the next one can be read, so that an interrupted reader can continue.
 */
import { findLost } from "../../contract/lost-json.ts";
import { usageError } from "../exit.ts";
import type { Bytes } from "./bytes.ts";
import { type Columns, checkColumns, namesIn, type Piece, type Row, taskRow } from "./columns.ts";
import type { CsvRecord, Separator } from "./csv.ts";
import { type Line, linesOf } from "./lines.ts";

const FORMATS = {
  parquet: "parquet",
  jsonl: "jsonl",
  ndjson: "jsonl",
  json: "jsonl",
  csv: "csv",
  tsv: "tsv",
} as const;
type Format = (typeof FORMATS)[keyof typeof FORMATS];

/** The endings of file names that are read. */
export const TABLE_ENDINGS = Object.keys(FORMATS);

/** Text is turned into rows in pieces of about this size. */
const PIECE_BYTES = 4 * 1024 * 1024;

/** By the ending of a file's name; null for all others. */
export function formatOf(name: string): Format | null {
  const ending = /\.([a-z]+)$/i.exec(name)?.[1]?.toLowerCase() ?? "";
  return Object.entries(FORMATS).find(([known]) => known === ending)?.[1] ?? null;
}

/**
 * Task rows from the position `from`; 0 is the beginning. More than `wanted` rows come only if they are read with the
 * others. Throws a usage error for a column that does not exist.
 */
export async function* taskRows(
  bytes: Bytes,
  format: Format,
  columns: Columns,
  from: number,
  wanted = Infinity,
): AsyncGenerator<Piece> {
  for await (const { rows, next } of await piecesOf(bytes, format, columns, from, wanted)) {
    yield { rows: rows.map((row) => taskRow(columns, row, bytes.name)), next };
  }
}

async function piecesOf(
  bytes: Bytes,
  format: Format,
  columns: Columns,
  from: number,
  wanted: number,
): Promise<AsyncIterable<Piece>> {
  if (format === "jsonl") {
    return checked(grouped(linesOf(bytes, from), from, jsonRow(bytes.name)), columns, bytes.name);
  }
  if (format !== "parquet") return await csvPieces(bytes, format === "csv" ? "," : "\t", columns, from);
  // Loaded for Parquet only: commands start without it.
  const { parquetPieces } = await import("./parquet.ts");
  return parquetPieces(bytes, columns, from, from + wanted);
}

/** The columns of JSON Lines are those of the first piece of rows: a row may lack a column. */
async function* checked(pieces: AsyncIterable<Piece>, columns: Columns, name: string): AsyncGenerator<Piece> {
  let first = true;
  for await (const piece of pieces) {
    if (first && columns !== null) checkColumns(columns, namesIn(piece.rows), name);
    first = false;
    yield piece;
  }
}

async function* grouped<Record extends { readonly end: number }>(
  records: AsyncIterable<Record>,
  from: number,
  rowOf: (record: Record) => Row | null,
): AsyncGenerator<Piece> {
  let rows: Row[] = [];
  let [start, next] = [from, from];
  for await (const record of records) {
    const row = rowOf(record);
    next = record.end;
    if (row !== null) rows.push(row);
    if (next - start < PIECE_BYTES) continue;
    yield { rows, next };
    [rows, start] = [[], next];
  }
  if (next > start) yield { rows, next };
}

function jsonRow(name: string): (line: Line) => Row | null {
  return ({ text, end }) => {
    const line = text.replace(/^\uFEFF/, "");
    if (line.trim() === "") return null;
    const at = `${name}: the row that ends at byte ${end}`;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw usageError(`${at} is not JSON: a file must hold one JSON object on each line`, "file");
    }
    const lost = findLost(line, value);
    if (lost !== null) throw usageError(`${at}: ${lost.message}`, "file");
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw usageError(`${at} is not a JSON object`, "file");
    }
    return { ...value };
  };
}

/** Every value of a CSV file is a text. Its first record names the columns. */
async function csvPieces(
  bytes: Bytes,
  separator: Separator,
  columns: Columns,
  from: number,
): Promise<AsyncIterable<Piece>> {
  // Loaded for CSV and TSV only: commands start without it.
  const { csvRecords } = await import("./csv.ts");
  const { header, end } = await headerOf(bytes.name, csvRecords(bytes, 0, separator));
  checkColumns(columns, header, bytes.name);
  const start = Math.max(from, end);
  return grouped(csvRecords(bytes, start, separator), start, ({ fields, end, isBlank }) => {
    if (isBlank && header.length > 1) return null;
    if (fields.length !== header.length) {
      const at = `${bytes.name}: the row that ends at byte ${end}`;
      throw usageError(`${at} has ${fields.length} fields; the first row names ${header.length} columns`, "file");
    }
    return Object.fromEntries(header.map((name, column) => [name, fields[column]]));
  });
}

async function headerOf(
  name: string,
  records: AsyncIterable<CsvRecord>,
): Promise<{ header: readonly string[]; end: number }> {
  for await (const { fields: header, end } of records) {
    const twice = header.find((column, at) => header.indexOf(column) < at);
    if (twice !== undefined) throw usageError(`${name}: the first row names the column ${twice} twice`, "file");
    if (!header.includes("")) return { header, end };
    throw usageError(`${name}: the first row must name every column`, "file");
  }
  throw usageError(`${name}: is empty; the first row must name the columns`, "file");
}
