/**
 * Splits a file of JSON lines into rows as its bytes arrive.
 *
 * Invariants. The rows do not depend on where the chunks end. A line of white space is not a row, but counts as a line:
 * `row` is for programs (from 0), `line` is what an editor shows (from 1). A byte order mark before the first row
 * belongs to no row. At most one unfinished line, of at most `limit` bytes, is held.
 */

export interface RowLine {
  readonly row: number;
  readonly line: number;
  /** Offset of its first byte in the file. */
  readonly offset: number;
  /** Without the line feed. Valid only until the next row is requested: it may be a view of a chunk. */
  readonly bytes: Uint8Array;
}

/** A line longer than the limit: it is not read to its end. */
export class LineTooLong extends Error {
  override readonly name = "LineTooLong";
  readonly row: number;
  readonly line: number;

  constructor(row: number, line: number) {
    super(`line ${line} is too long`);
    this.row = row;
    this.line = line;
  }
}

const LINE_FEED = 10;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const NOTHING = new Uint8Array(0);

export class RowLines {
  readonly #limit: number;
  #row: number;
  #line = 0;
  /** Offset of the first byte of the line that is being read. */
  #offset: number;
  /** The beginning of that line, from earlier chunks: the first `#held` bytes. */
  #begun = NOTHING;
  #held = 0;

  /** `start`: where in the file the bytes begin, and the number of the row there. Lines are counted from that place. */
  constructor(limit: number, start: { offset: number; row: number } = { offset: 0, row: 0 }) {
    this.#limit = limit;
    this.#offset = start.offset;
    this.#row = start.row;
  }

  /** The rows that this chunk completes. Throws `LineTooLong`. */
  *push(chunk: Uint8Array): Generator<RowLine> {
    let from = 0;
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, from)) {
      const line = this.#complete(chunk.subarray(from, at), 1);
      from = at + 1;
      if (line !== null) yield line;
    }
    this.#hold(chunk.subarray(from));
  }

  /** The last row, if the file does not end in a line feed. */
  *end(): Generator<RowLine> {
    const line = this.#held === 0 ? null : this.#complete(NOTHING, 0);
    if (line !== null) yield line;
  }

  #complete(rest: Uint8Array, ending: number): RowLine | null {
    const whole = this.#held === 0 ? this.#within(rest) : this.#joined(rest);
    const mark = this.#offset === 0 && startsWithMark(whole) ? BYTE_ORDER_MARK.length : 0;
    const bytes = whole.subarray(mark);
    const offset = this.#offset + mark;
    this.#line += 1;
    this.#offset += whole.length + ending;
    this.#held = 0;
    if (bytes.every(isBlank)) return null;
    this.#row += 1;
    return { row: this.#row - 1, line: this.#line, offset, bytes };
  }

  #joined(rest: Uint8Array): Uint8Array {
    this.#hold(rest);
    return this.#begun.subarray(0, this.#held);
  }

  #hold(bytes: Uint8Array): void {
    const length = this.#held + bytes.length;
    if (length > this.#limit) throw new LineTooLong(this.#row, this.#line + 1);
    if (length > this.#begun.length) {
      const longer = new Uint8Array(Math.min(2 * length, this.#limit));
      longer.set(this.#begun.subarray(0, this.#held));
      this.#begun = longer;
    }
    this.#begun.set(bytes, this.#held);
    this.#held = length;
  }

  #within(line: Uint8Array): Uint8Array {
    if (line.length > this.#limit) throw new LineTooLong(this.#row, this.#line + 1);
    return line;
  }
}

function startsWithMark(bytes: Uint8Array): boolean {
  return BYTE_ORDER_MARK.every((byte, at) => bytes[at] === byte);
}

/** Space, tab or carriage return. */
function isBlank(byte: number): boolean {
  return byte === 32 || byte === 9 || byte === 13;
}
