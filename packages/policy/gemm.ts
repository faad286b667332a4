/**
 * The memory of the matrix product, and the product itself (assembly/gemm.ts, compiled to gemm.wasm).
 *
 * Invariants: vectors are allocated once and live as long as the arena: nothing is freed. The memory never grows, so
 * its vectors stay valid; pages that are never written cost nothing.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * C[i, j] (+)= sum over k of A[i, k] * B[k, j], for i < rows, j < columns, k < depth. `columns` is a multiple of 8. a,
 * b, c are byte addresses (`vector.byteOffset`); strides are counted in elements. A has a stride for each index, so it
 * may be read transposed. `add` adds to the content of C. A row's bits do not depend on the other rows.
 */
export type Gemm = (
  rows: number,
  columns: number,
  depth: number,
  a: number,
  aRowStride: number,
  aStepStride: number,
  b: number,
  bRowStride: number,
  c: number,
  cRowStride: number,
  add: boolean,
) => void;

const PAGE_BYTES = 65_536;
const ALIGNMENT_BYTES = 16;
/** The module uses a few bytes at the start of the memory. */
const FIRST_FREE_BYTE = 1024;

/** By reflection, because the TypeScript types are those of Workers, where only a bundler makes modules. */
const wasm: WebAssembly.Module = Reflect.construct(WebAssembly.Module, [
  readFileSync(join(import.meta.dirname, "gemm.wasm")),
]);

export class Arena {
  readonly gemm: Gemm;
  readonly #buffer: ArrayBuffer;
  #next = FIRST_FREE_BYTE;

  /** `capacity` in 32-bit floats. */
  constructor(capacity: number) {
    const pages = Math.ceil((FIRST_FREE_BYTE + capacity * 4) / PAGE_BYTES);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    const { exports } = new WebAssembly.Instance(wasm, { env: { memory } });
    this.gemm = exports["gemm"] as Gemm;
    this.#buffer = memory.buffer;
  }

  /** A vector of zeros, 16-byte aligned. Throws RangeError if the arena is full. */
  vector(length: number): Float32Array<ArrayBuffer> {
    const vector = new Float32Array(this.#buffer, this.#next, length);
    const end = this.#next + length * 4;
    this.#next = Math.ceil(end / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
    return vector;
  }
}
