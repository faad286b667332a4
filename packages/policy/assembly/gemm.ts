/**
 * C[i, j] (+)= sum over k of A[i, k] * B[k, j], in AssemblyScript: compiled by `npm run build:gemm`, never by tsc.
 *
 * Invariants: every cell is summed in the order of k, starting at zero, one product and one addition at a time, in both
 * tile shapes. A cell therefore has the same bits in any tile, and a row's result depends neither on its place in the
 * batch nor on the batch's size. Nothing is allocated; the caller provides the addresses.
 *
 * A is read with two strides, so it may be transposed; rows of B and C are contiguous, and `columns` is a multiple of
 * 8. a, b, c are byte addresses, strides are counted in elements.
 */
const ROWS = 4;
const COLUMNS = 8;

/** Strides in bytes. */
let aRow: usize = 0;
let aStep: usize = 0;
let bRow: usize = 0;
let cRow: usize = 0;
let inner: i32 = 0;
let accumulate: bool = false;

export function gemm(
  rows: i32,
  columns: i32,
  depth: i32,
  a: usize,
  aRowStride: i32,
  aStepStride: i32,
  b: usize,
  bRowStride: i32,
  c: usize,
  cRowStride: i32,
  add: bool,
): void {
  aRow = (<usize>aRowStride) << 2;
  aStep = (<usize>aStepStride) << 2;
  bRow = (<usize>bRowStride) << 2;
  cRow = (<usize>cRowStride) << 2;
  inner = depth;
  accumulate = add;
  let row = 0;
  for (; row + ROWS <= rows; row += ROWS) {
    for (let j = 0; j < columns; j += COLUMNS) fourByEight(a, b + (j << 2), c + (j << 2));
    a += ROWS * aRow;
    c += ROWS * cRow;
  }
  for (; row < rows; row++) {
    for (let j = 0; j < columns; j += COLUMNS) oneByEight(a, b + (j << 2), c + (j << 2));
    a += aRow;
    c += cRow;
  }
}

function fourByEight(a: usize, b: usize, c: usize): void {
  let low0 = f32x4.splat(0);
  let low1 = low0;
  let low2 = low0;
  let low3 = low0;
  let high0 = low0;
  let high1 = low0;
  let high2 = low0;
  let high3 = low0;
  let a1 = a + aRow;
  let a2 = a1 + aRow;
  let a3 = a2 + aRow;
  const step = aStep;
  const next = bRow;
  for (let k = inner; k > 0; k--) {
    const low = v128.load(b);
    const high = v128.load(b, 16);
    let x = v128.load32_splat(a);
    low0 = f32x4.add(low0, f32x4.mul(x, low));
    high0 = f32x4.add(high0, f32x4.mul(x, high));
    x = v128.load32_splat(a1);
    low1 = f32x4.add(low1, f32x4.mul(x, low));
    high1 = f32x4.add(high1, f32x4.mul(x, high));
    x = v128.load32_splat(a2);
    low2 = f32x4.add(low2, f32x4.mul(x, low));
    high2 = f32x4.add(high2, f32x4.mul(x, high));
    x = v128.load32_splat(a3);
    low3 = f32x4.add(low3, f32x4.mul(x, low));
    high3 = f32x4.add(high3, f32x4.mul(x, high));
    a += step;
    a1 += step;
    a2 += step;
    a3 += step;
    b += next;
  }
  put(c, low0, high0);
  put(c + cRow, low1, high1);
  put(c + 2 * cRow, low2, high2);
  put(c + 3 * cRow, low3, high3);
}

function oneByEight(a: usize, b: usize, c: usize): void {
  let low = f32x4.splat(0);
  let high = low;
  for (let k = inner; k > 0; k--) {
    const x = v128.load32_splat(a);
    low = f32x4.add(low, f32x4.mul(x, v128.load(b)));
    high = f32x4.add(high, f32x4.mul(x, v128.load(b, 16)));
    a += aStep;
    b += bRow;
  }
  put(c, low, high);
}

function put(c: usize, low: v128, high: v128): void {
  if (accumulate) {
    v128.store(c, f32x4.add(v128.load(c), low));
    v128.store(c, f32x4.add(v128.load(c, 16), high), 16);
    return;
  }
  v128.store(c, low);
  v128.store(c, high, 16);
}
