/** The matrix product of a layer and its gradients. */
import type { Trainee } from "./trainee.ts";

/** out (+)= input × matrix, for the first `rows` rows; `columns` is the matrix's width. */
export function product(
  { gemm }: Trainee,
  rows: number,
  input: Float32Array,
  matrix: Float32Array,
  columns: number,
  out: Float32Array,
  add: boolean,
): void {
  const depth = matrix.length / columns;
  const [a, b, c] = [input.byteOffset, matrix.byteOffset, out.byteOffset];
  gemm(rows, columns, depth, a, depth, 1, b, columns, c, columns, add);
}

/** One product of the forward pass, as its gradients need it. */
export interface Used {
  readonly input: Float32Array;
  readonly matrix: Float32Array;
  readonly matrixGradient: Float32Array;
  readonly outGradient: Float32Array;
}

/** Adds to the matrix's gradient, and writes the input's. */
export function productGradients(
  { gemm, scratch: { transposed } }: Trainee,
  rows: number,
  { input, matrix, matrixGradient, outGradient }: Used,
  columns: number,
  inputGradient: Float32Array,
): void {
  const depth = matrix.length / columns;
  const [x, y] = [input.byteOffset, outGradient.byteOffset];
  gemm(depth, columns, rows, x, 1, depth, y, columns, matrixGradient.byteOffset, columns, true);
  transpose(matrix, depth, columns, transposed);
  const out = inputGradient.byteOffset;
  gemm(rows, depth, columns, y, columns, 1, transposed.byteOffset, depth, out, depth, false);
}

function transpose(matrix: Float32Array, rows: number, columns: number, out: Float32Array): void {
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      out[column * rows + row] = matrix[row * columns + column] ?? 0;
    }
  }
}
