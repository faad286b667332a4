/**
 * Where the blocks of an uploaded file begin: for each, the number of its first row and the byte offset of that row, as
 * two unsigned 32-bit numbers, little endian. 1 GiB of rows, the most a dataset may have, needs no more.
 *
 * A block has at most 256 rows and 1 MiB, or is one longer row: it is read whole to read a row of it.
 */
import { LIMITS } from "../../contract/limits.ts";

const ENTRY_BYTES = 8;

export interface BlockStart {
  readonly row: number;
  /** Of the row's first byte in the file. */
  readonly offset: number;
}

/** Gathers the index while the rows pass by. */
export class IndexWriter {
  readonly #starts: BlockStart[] = [];

  /** Told of every row, in order. */
  note(row: number, offset: number, bytes: number): void {
    const last = this.#starts.at(-1);
    const fits =
      last !== undefined &&
      row - last.row < LIMITS.datasetBlockRows &&
      offset + bytes - last.offset <= LIMITS.datasetBlockBytes;
    if (!fits) this.#starts.push({ row, offset });
  }

  encode(): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(this.#starts.length * ENTRY_BYTES);
    const view = new DataView(bytes.buffer);
    for (const [block, { row, offset }] of this.#starts.entries()) {
      view.setUint32(block * ENTRY_BYTES, row, true);
      view.setUint32(block * ENTRY_BYTES + 4, offset, true);
    }
    return bytes;
  }
}

export class DatasetIndex {
  readonly #view: DataView;

  constructor(bytes: ArrayBuffer) {
    this.#view = new DataView(bytes);
  }

  /** The block that has the row, or would have it if the file went on. */
  blockOf(row: number): number {
    let [low, high] = [0, this.#view.byteLength / ENTRY_BYTES];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.start(middle).row <= row) low = middle;
      else high = middle;
    }
    return low;
  }

  start(block: number): BlockStart {
    const at = block * ENTRY_BYTES;
    return { row: this.#view.getUint32(at, true), offset: this.#view.getUint32(at + 4, true) };
  }

  /** Where the block ends (not including that byte); null for the last one, which ends with the file. */
  end(block: number): number | null {
    const next = block + 1;
    return next * ENTRY_BYTES < this.#view.byteLength ? this.start(next).offset : null;
  }
}
