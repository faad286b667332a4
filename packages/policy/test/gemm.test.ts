import { seededRandom } from "rollcall/helpers";
import { expect, test } from "vitest";
import { Arena } from "../gemm.ts";

const random = seededRandom("gemm");
const arena = new Arena(200_000);

function filled(length: number): Float32Array {
  const vector = arena.vector(length);
  for (let at = 0; at < length; at += 1) vector[at] = random() - 0.5;
  return vector;
}

/** The sum as the module specifies it: in order, with every product and sum rounded to 32 bits. */
function cell(a: Float32Array, b: Float32Array, at: (k: number) => [number, number], depth: number) {
  let sum = 0;
  for (let k = 0; k < depth; k += 1) {
    const [left, right] = at(k);
    sum = Math.fround(sum + Math.fround((a[left] ?? 0) * (b[right] ?? 0)));
  }
  return sum;
}

test.each([
  { rows: 1, columns: 8, depth: 16 },
  { rows: 4, columns: 24, depth: 1 },
  { rows: 7, columns: 64, depth: 33 },
  { rows: 130, columns: 240, depth: 64 },
])("$rows × $depth times $depth × $columns is exact to the bit", ({ rows, columns, depth }) => {
  const [a, b, c] = [filled(rows * depth), filled(depth * columns), filled(rows * columns)];
  const before = c.slice();
  const multiply = (add: boolean) =>
    arena.gemm(rows, columns, depth, a.byteOffset, depth, 1, b.byteOffset, columns, c.byteOffset, columns, add);
  const expected = Float32Array.from({ length: rows * columns }, (_, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns];
    return cell(a, b, (k) => [row * depth + k, k * columns + column], depth);
  });
  multiply(true);
  expect(c).toEqual(before.map((value, at) => value + (expected[at] ?? 0)));
  multiply(false);
  expect(c).toEqual(expected);
});

test("the left matrix is read transposed with its strides", () => {
  const [rows, columns, depth] = [5, 8, 6];
  const [a, b, c] = [filled(depth * rows), filled(depth * columns), filled(rows * columns)];
  arena.gemm(rows, columns, depth, a.byteOffset, 1, rows, b.byteOffset, columns, c.byteOffset, columns, false);
  const [row, column] = [3, 2];
  expect(c[row * columns + column]).toBe(cell(a, b, (k) => [k * rows + row, k * columns + column], depth));
});

test("a row has the same bits alone, and at any place among others", () => {
  const [rows, columns, depth] = [11, 64, 256];
  const [a, b, c, alone] = [filled(rows * depth), filled(depth * columns), filled(rows * columns), filled(columns)];
  arena.gemm(rows, columns, depth, a.byteOffset, depth, 1, b.byteOffset, columns, c.byteOffset, columns, false);
  for (let row = 0; row < rows; row += 1) {
    const from = a.byteOffset + row * depth * 4;
    arena.gemm(1, columns, depth, from, depth, 1, b.byteOffset, columns, alone.byteOffset, columns, false);
    expect(alone).toEqual(c.slice(row * columns, (row + 1) * columns));
  }
});

test("an arena that is full throws", () => {
  expect(() => new Arena(10).vector(1_000_000)).toThrow(RangeError);
});
