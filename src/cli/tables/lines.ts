/** Cuts a stream of bytes into records: lines, or the records of a CSV file, whose quoted fields may hold lines. */
import { isUtf8 } from "node:buffer";
import { usageError } from "../exit.ts";
import type { Bytes } from "./bytes.ts";

export interface Record {
  readonly text: string;
  /** The offset of the byte after the record and its end of line. */
  readonly end: number;
}

const [NEWLINE, QUOTE] = [10, 34];
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const MAX_RECORD_BYTES = 16 * 1024 * 1024;

/** What separates the fields of a record; null: records are lines, and a quote means nothing. */
export type Separator = "," | "\t" | null;

/** The records from the offset `from`, at which one begins. An end of line inside of a quoted field ends nothing. */
export async function* recordsOf(bytes: Bytes, from: number, separator: Separator): AsyncGenerator<Record> {
  const cutter = new Cutter(bytes.name, from, separator);
  for await (const chunk of bytes.stream(from)) yield* cutter.cut(chunk);
  yield* cutter.rest();
}

class Cutter {
  readonly #name: string;
  readonly #separator: number | null;
  /** The parts of the record that has begun, from the offset `#start`. */
  #begun: Uint8Array[] = [];
  #start: number;
  /** The offset of the next chunk. */
  #at: number;
  #quoted = false;
  /** The next byte opens quotes if it is one: it begins a field, or follows a quote that doubles it. */
  #opens = true;

  constructor(name: string, from: number, separator: Separator) {
    this.#name = name;
    this.#start = from;
    this.#at = from;
    this.#separator = separator?.charCodeAt(0) ?? null;
  }

  *cut(chunk: Uint8Array): Generator<Record> {
    let start = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      if (this.#separator !== null) this.#readQuote(chunk[at], this.#at + at);
      if (this.#quoted || chunk[at] !== NEWLINE) continue;
      yield this.#record(chunk.subarray(start, at + 1));
      start = at + 1;
    }
    this.#at += chunk.length;
    if (start < chunk.length) this.#begun.push(chunk.slice(start));
    if (this.#begun.reduce((sum, part) => sum + part.length, 0) > MAX_RECORD_BYTES) {
      throw this.#fault(`is longer than ${MAX_RECORD_BYTES / 1024 / 1024} MiB`);
    }
  }

  #readQuote(byte: number | undefined, offset: number): void {
    if (byte === QUOTE && (this.#quoted || this.#opens)) {
      this.#quoted = !this.#quoted;
      this.#opens = true;
    } else if (byte !== BYTE_ORDER_MARK[offset]) {
      this.#opens = byte === this.#separator || byte === NEWLINE;
    }
  }

  /** The last record, if its end of line is missing. */
  *rest(): Generator<Record> {
    if (this.#quoted) throw this.#fault("has a quote that is not closed");
    if (this.#begun.length > 0) yield this.#record(new Uint8Array());
  }

  #record(part: Uint8Array): Record {
    const whole = Buffer.concat([...this.#begun, part]);
    if (!isUtf8(whole)) throw this.#fault("is not UTF-8");
    this.#begun = [];
    this.#start += whole.length;
    return { text: whole.toString().replace(/\r?\n$/, ""), end: this.#start };
  }

  #fault(what: string) {
    return usageError(`${this.#name}: the row at byte ${this.#start} ${what}`, "file");
  }
}
