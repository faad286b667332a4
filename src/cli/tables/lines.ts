/** Cuts a stream of bytes into lines. */
import { isUtf8 } from "node:buffer";
import { type CommandError, usageError } from "../exit.ts";
import type { Bytes } from "./bytes.ts";

export interface Line {
  readonly text: string;
  /** The offset of the byte after the line and its end. */
  readonly end: number;
}

const NEWLINE = 10;
/** Of a line, or of a record of a CSV file. */
export const MAX_RECORD_BYTES = 16 * 1024 * 1024;
export const TOO_LONG = `is longer than ${MAX_RECORD_BYTES / 1024 / 1024} MiB`;

/** The lines from the offset `from`, at which one begins. */
export async function* linesOf(bytes: Bytes, from: number): AsyncGenerator<Line> {
  const cutter = new Cutter(bytes.name, from);
  for await (const chunk of bytes.stream(from)) yield* cutter.cut(chunk);
  yield* cutter.rest();
}

/** `start`: the offset of its first byte. */
export function recordFault(name: string, start: number, what: string): CommandError {
  return usageError(`${name}: the row at byte ${start} ${what}`, "file");
}

class Cutter {
  readonly #name: string;
  /** The parts of the line that has begun, from the offset `#start`. */
  #begun: Uint8Array[] = [];
  #length = 0;
  #start: number;

  constructor(name: string, from: number) {
    this.#name = name;
    this.#start = from;
  }

  *cut(chunk: Uint8Array): Generator<Line> {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      yield this.#line(chunk.subarray(start, end + 1));
      start = end + 1;
    }
    if (start < chunk.length) this.#begun.push(chunk.slice(start));
    this.#length += chunk.length - start;
    if (this.#length > MAX_RECORD_BYTES) throw recordFault(this.#name, this.#start, TOO_LONG);
  }

  /** The last line, if its end is missing. */
  *rest(): Generator<Line> {
    if (this.#begun.length > 0) yield this.#line(new Uint8Array());
  }

  #line(part: Uint8Array): Line {
    const whole = Buffer.concat([...this.#begun, part]);
    if (!isUtf8(whole)) throw recordFault(this.#name, this.#start, "is not UTF-8");
    this.#begun = [];
    this.#length = 0;
    this.#start += whole.length;
    return { text: whole.toString().replace(/\r?\n$/, ""), end: this.#start };
  }
}
