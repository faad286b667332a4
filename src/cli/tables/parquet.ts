/**
 * Reads a Parquet file by ranges, one row group at a time and only the columns that are needed. Format: Apache Parquet,
 * https://parquet.apache.org/docs/file-format.
 */
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import {
  type AsyncBuffer,
  type Compressors,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  type SchemaTree,
  snappyUncompress,
} from "hyparquet";
import { CommandError, usageError } from "../exit.ts";
import type { Bytes } from "./bytes.ts";
import { type Columns, checkColumns, columnsToRead, type Piece } from "./columns.ts";

/** The columns that are read of one row group are in memory at once. */
const MAX_GROUP_BYTES = 512 * 1024 * 1024;
/** The text of these is in memory at once: a value that a row group holds once may be in every row. */
const PIECE_ROWS = 1000;

/** The rows from the number `from` up to, but not including, `to`. */
export async function* parquetPieces(bytes: Bytes, columns: Columns, from: number, to: number): AsyncGenerator<Piece> {
  const file: AsyncBuffer = {
    byteLength: bytes.size,
    slice: (start, end = bytes.size) => {
      if (end - start > MAX_GROUP_BYTES) throw tooLarge(bytes.name, end - start);
      return bytes.read(Math.max(0, start), end);
    },
  };
  const metadata = await parsed(bytes, () => parquetMetadataAsync(file));
  const schema = parquetSchema(metadata);
  checkColumns(columns, columnNames(schema), bytes.name);
  const topLevel = schema.children.map(({ element }) => element.name);
  const read = columnsToRead(columns, topLevel);
  let start = 0;
  for (const group of metadata.row_groups) {
    const end = start + Number(group.num_rows);
    if (end > from && start < to) {
      checkSize(group, read, bytes.name);
      const rowStart = Math.max(start, from);
      const rowEnd = Math.min(end, to);
      const options = { file, metadata, compressors: COMPRESSORS, rowStart, rowEnd, utf8: false, useOffsetIndex: true };
      const rows = await parsed(bytes, () => parquetReadObjects({ ...options, ...(read && { columns: read }) }));
      for (let at = 0; at < rows.length; at += PIECE_ROWS) {
        const piece = rows.slice(at, at + PIECE_ROWS);
        yield { rows: piece, next: rowStart + at + piece.length };
      }
    }
    start = end;
  }
}

/** Any fault in the bytes of the file is a usage error with its name; errors of the source stay as they are. */
async function parsed<T>(bytes: Bytes, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof CommandError || !(error instanceof Error) || error.name.endsWith("AbortError")) throw error;
    throw usageError(`${bytes.name}: cannot be read as Parquet: ${error.message}`, "file");
  }
}

/** The names of all columns; parts of nested ones have dots. */
function columnNames({ children }: SchemaTree, before = ""): string[] {
  return children.flatMap((child) => {
    const name = before + child.element.name;
    const { converted_type, logical_type } = child.element;
    const isList = ["LIST", "MAP"].includes(converted_type ?? logical_type?.type ?? "");
    return isList ? [name] : [name, ...columnNames(child, `${name}.`)];
  });
}

function checkSize(group: FileMetaData["row_groups"][number], read: string[] | undefined, name: string): void {
  const sizes = group.columns.map(({ meta_data }) => {
    const [column = ""] = meta_data?.path_in_schema ?? [];
    return read === undefined || read.includes(column) ? Number(meta_data?.total_uncompressed_size ?? 0) : 0;
  });
  const size = sizes.reduce((sum, bytes) => sum + bytes, 0);
  if (size > MAX_GROUP_BYTES) throw tooLarge(name, size);
}

function tooLarge(name: string, bytes: number): CommandError {
  const [size, limit] = [bytes, MAX_GROUP_BYTES].map((count) => `${Math.ceil(count / 1024 / 1024)} MiB`);
  const what = `a row group holds ${size} in these columns, more than the limit of ${limit}`;
  return usageError(`${name}: ${what}: choose fewer columns with --columns`, "columns");
}

/** Pages say their length before they are unpacked; a page that is longer is refused. */
const COMPRESSORS: Compressors = {
  SNAPPY: (input, length) => {
    const output = new Uint8Array(bounded(length));
    snappyUncompress(input, output);
    return output;
  },
  GZIP: (input, length) => gunzipSync(input, { maxOutputLength: bounded(length) }),
  BROTLI: (input, length) => brotliDecompressSync(input, { maxOutputLength: bounded(length) }),
  ZSTD: (input, length) => zstdDecompressSync(input, { maxOutputLength: bounded(length) }),
};

function bounded(length: number): number {
  if (length >= 0 && length <= MAX_GROUP_BYTES) return Math.max(1, length);
  throw new Error(`a page of ${length} bytes is larger than the limit of ${MAX_GROUP_BYTES}`);
}
