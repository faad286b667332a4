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

/** What is read of the needed columns of one row group at once: as many bytes packed, and as many unpacked. */
const MAX_BYTES = 512 * 1024 * 1024;
/** Pages are larger or smaller than on average: a part of a row group that is read has half of the most, by its rows. */
const PART = 0.5;
/** The text of these is in memory at once: a value that a row group holds once may be in every row. */
const PIECE_ROWS = 1000;

type RowGroup = FileMetaData["row_groups"][number];

/** The rows from the number `from` up to, but not including, `to`. `most`: bytes that are read at once, and bytes of unpacked pages. */
export async function* parquetPieces(
  bytes: Bytes,
  columns: Columns,
  from: number,
  to: number,
  most = MAX_BYTES,
): AsyncGenerator<Piece> {
  /** Bytes that may still be read of the metadata, or of the rows that are read now; and those of unpacked pages. */
  let [left, unpackedLeft] = [MAX_BYTES, 0];
  const file: AsyncBuffer = {
    byteLength: bytes.size,
    slice: (start, end = bytes.size) => {
      left -= end - start;
      if (left < 0) throw tooLarge(bytes.name, `more than ${inMiB(most)} must be read at once`);
      return bytes.read(Math.max(0, start), end);
    },
  };
  const compressors = compressorsOf((length) => {
    unpackedLeft -= length;
    if (unpackedLeft < 0) throw tooLarge(bytes.name, `more than ${inMiB(most)} must be unpacked at once`);
  });
  const metadata = await parsed(bytes, () => parquetMetadataAsync(file));
  const schema = parquetSchema(metadata);
  checkColumns(columns, columnNames(schema), bytes.name);
  const topLevel = schema.children.map(({ element }) => element.name);
  const read = columnsToRead(columns, topLevel);
  let start = 0;
  for (const group of metadata.row_groups) {
    const end = start + Number(group.num_rows);
    const step = end > from && start < to ? rowsAtOnce(group, read, bytes.name, most) : 0;
    const until = Math.min(end, to);
    for (let rowStart = Math.max(start, from); step > 0 && rowStart < until; rowStart += step) {
      [left, unpackedLeft] = [most, most];
      const rowEnd = Math.min(rowStart + step, until);
      const options = { file, metadata, compressors, rowStart, rowEnd, utf8: false, useOffsetIndex: true };
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

/** All rows of the group, or fewer if these would be too much and the group has an index of its pages. */
function rowsAtOnce(group: RowGroup, read: string[] | undefined, name: string, most: number): number {
  const needed = group.columns.filter(({ meta_data }) => {
    const [column = ""] = meta_data?.path_in_schema ?? [];
    return read === undefined || read.includes(column);
  });
  const size = needed.reduce((sum, { meta_data }) => sum + Number(meta_data?.total_uncompressed_size ?? 0), 0);
  const rows = Number(group.num_rows);
  if (size <= most) return rows;
  const isIndexed = needed.every((column) => column.offset_index_offset && column.offset_index_length);
  if (!isIndexed) {
    const what = `a row group holds ${inMiB(size)} in these columns, more than the limit of ${inMiB(most)}`;
    throw tooLarge(name, `${what} without a page index`, ", or write the file again with a page index");
  }
  return Math.max(1, Math.floor((rows * most * PART) / size));
}

function tooLarge(name: string, what: string, otherwise = ""): CommandError {
  return usageError(`${name}: ${what}: choose fewer columns with --columns${otherwise}`, "columns");
}

function inMiB(bytes: number): string {
  return `${Math.ceil(bytes / 1024 / 1024)} MiB`;
}

/**
 * Pages say their length before they are unpacked; a page that is longer is refused. `spend` is called with each length,
 * and throws if it is too much: a file may state less for all its pages together.
 */
function compressorsOf(spend: (length: number) => void): Compressors {
  const bounded = (length: number) => {
    if (length < 0) throw new Error(`a page has the length ${length}`);
    spend(length);
    return Math.max(1, length);
  };
  return {
    SNAPPY: (input, length) => {
      const output = new Uint8Array(bounded(length));
      snappyUncompress(input, output);
      return output;
    },
    GZIP: (input, length) => gunzipSync(input, { maxOutputLength: bounded(length) }),
    BROTLI: (input, length) => brotliDecompressSync(input, { maxOutputLength: bounded(length) }),
    ZSTD: (input, length) => zstdDecompressSync(input, { maxOutputLength: bounded(length) }),
  };
}
