/**
 * Where the blocks of an uploaded file begin: the byte offset of every 256th row, as unsigned 32-bit numbers, little
 * endian. 1 GiB of rows, the most a dataset may have, needs no more.
 */
import { LIMITS } from "../core/limits.ts";

const ENTRY_BYTES = 4;

/** Gathers the index while the rows pass by. */
export class IndexWriter {
  readonly #offsets: number[] = [];

  /** Told of every row, in order. */
  note(row: number, offset: number): void {
    if (row % LIMITS.datasetIndexRows === 0) this.#offsets.push(offset);
  }

  encode(): Uint8Array {
    const bytes = new Uint8Array(this.#offsets.length * ENTRY_BYTES);
    const view = new DataView(bytes.buffer);
    for (const [at, offset] of this.#offsets.entries())
      view.setUint32(at * ENTRY_BYTES, offset, true);
    return bytes;
  }
}

export class DatasetIndex {
  readonly #view: DataView;

  constructor(bytes: ArrayBuffer) {
    this.#view = new DataView(bytes);
  }

  /** The bytes of a block, from and (not including) to; `to` is null for the last one, which ends with the file. */
  range(block: number): { readonly from: number; readonly to: number | null } {
    const at = block * ENTRY_BYTES;
    const next = at + ENTRY_BYTES;
    const last = next >= this.#view.byteLength;
    return {
      from: this.#view.getUint32(at, true),
      to: last ? null : this.#view.getUint32(next, true),
    };
  }
}
