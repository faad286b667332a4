/**
 * Reads the records of a CSV or TSV file with csv-parse, from any byte at which one begins.
 *
 * The parser takes a quote inside of an unquoted field as text (`5" pipe`). With that option it also takes text after a
 * closing quote, which is refused here: the bytes of a quoted field are its text, two quotes, and one more for each quote
 * in the text. It also takes a NUL after a closing quote, which is then as long as one before it: a quoted field must not
 * have any. Its limit on the size of a record counts no separators, so fields are counted here, too. Fields are
 * decoded here, because it replaces bytes that are not UTF-8.
 */
import { isUtf8 } from "node:buffer";
import { pipeline, Readable } from "node:stream";
import { CsvError, type Info, type InfoField, parse } from "csv-parse";
import type { Bytes } from "./bytes.ts";
import { MAX_RECORD_BYTES, recordFault, TOO_LONG } from "./lines.ts";

export interface CsvRecord {
  readonly fields: readonly string[];
  /** The offset of the byte after the record and its end of line. */
  readonly end: number;
  /** It is an empty line: not even quotes. */
  readonly isBlank: boolean;
}

export type Separator = "," | "\t";

const MAX_FIELDS = 100_000;
const BYTE_ORDER_MARK = Buffer.from("\uFEFF");

/** A blank line is a record with one empty field. Throws a usage error for a record that cannot be read. */
export async function* csvRecords(bytes: Bytes, from: number, separator: Separator): AsyncGenerator<CsvRecord> {
  const start = from === 0 && (await beginsWithMark(bytes)) ? BYTE_ORDER_MARK.length : from;
  const reader = new FieldReader(bytes.name, start);
  const parser = parse({
    delimiter: separator,
    record_delimiter: ["\r\n", "\n"],
    // One character is one byte.
    encoding: "latin1",
    relax_quotes: true,
    relax_column_count: true,
    max_record_size: MAX_RECORD_BYTES,
    cast: (field, info) => reader.read(field, info),
    on_record: (fields, info) => reader.endRecord(fields, info),
  });
  // An error of either stream is thrown by the loop.
  pipeline(Readable.from(bytes.stream(start)), parser, () => undefined);
  const records: AsyncIterable<string[]> = parser;
  try {
    for await (const fields of records) yield { fields, ...reader.placeOf(fields) };
  } catch (error) {
    throw reader.faultOf(error);
  }
}

async function beginsWithMark(bytes: Bytes): Promise<boolean> {
  if (bytes.size < BYTE_ORDER_MARK.length) return false;
  return BYTE_ORDER_MARK.equals(new Uint8Array(await bytes.read(0, BYTE_ORDER_MARK.length)));
}

/** Checks and decodes the fields that the parser has found. The parser counts bytes from `#from`. */
class FieldReader {
  readonly #name: string;
  readonly #from: number;
  /** Where the record and the field begin that are parsed now. */
  #record = 0;
  #field = 0;
  /** The bytes of the last field, quotes included. */
  #length = 0;
  readonly #places = new WeakMap<readonly string[], Pick<CsvRecord, "end" | "isBlank">>();

  constructor(name: string, from: number) {
    this.#name = name;
    this.#from = from;
  }

  /** `field`: one character for each byte. `bytes`: the end of the field; `index`: the number of fields before it. */
  read(field: string, { bytes, index, quoting }: InfoField): string {
    const length = bytes - this.#field;
    this.#field = bytes + 1;
    this.#length = length;
    if (index >= MAX_FIELDS) throw this.#fault(`has more than ${MAX_FIELDS} fields`);
    const quotes = quoting ? field.split('"').length + 1 : 0;
    if (length !== field.length + quotes) throw this.#fault("has text after a closing quote");
    if (quoting && field.includes("\0")) throw this.#fault("has a NUL in a quoted field or after it");
    const text = Buffer.from(field, "latin1");
    if (!isUtf8(text)) throw this.#fault("is not UTF-8");
    return text.toString();
  }

  endRecord(fields: string[], { bytes }: Info): string[] {
    this.#record = bytes;
    this.#field = bytes;
    const isBlank = fields.length === 1 && this.#length === 0;
    this.#places.set(fields, { end: this.#from + bytes, isBlank });
    return fields;
  }

  placeOf(fields: readonly string[]): Pick<CsvRecord, "end" | "isBlank"> {
    return this.#places.get(fields) ?? { end: this.#from, isBlank: false };
  }

  /** The usage error for an error of the parser; other errors stay as they are. */
  faultOf(error: unknown): unknown {
    if (!(error instanceof CsvError)) return error;
    if (error.code === "CSV_QUOTE_NOT_CLOSED") return this.#fault("has a quote that is not closed");
    return error.code === "CSV_MAX_RECORD_SIZE" ? this.#fault(TOO_LONG) : error;
  }

  #fault(what: string) {
    return recordFault(this.#name, this.#from + this.#record, what);
  }
}
