import fc from "fast-check";
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { DatasetIndex, IndexWriter } from "../../../src/kernel/dataset/rows.ts";

/** Rows of these lengths, each followed by a line feed. */
function indexOf(lengths: readonly number[]) {
  const writer = new IndexWriter();
  const offsets: number[] = [];
  let offset = 3;
  for (const [row, bytes] of lengths.entries()) {
    writer.note(row, offset, bytes);
    offsets.push(offset);
    offset += bytes + 1;
  }
  return { index: new DatasetIndex(writer.encode().buffer), offsets, end: offset };
}

test("blocks of short rows have 256 rows each", () => {
  const { index, offsets } = indexOf(new Array(600).fill(10));
  expect([0, 255, 256, 511, 512, 599, 9999].map((row) => index.blockOf(row))).toEqual([0, 0, 1, 1, 2, 2, 2]);
  expect(index.start(1)).toEqual({ row: 256, offset: offsets[256] });
  expect([index.end(1), index.end(2)]).toEqual([offsets[512], null]);
});

test("every row is in its block, and a block is short or one row", () => {
  const length = fc.oneof(fc.integer({ min: 2, max: 50 }), fc.integer({ min: 2, max: LIMITS.taskRowBytes }));
  fc.assert(
    fc.property(fc.array(length, { minLength: 1, maxLength: 700, size: "max" }), (lengths) => {
      const { index, offsets, end } = indexOf(lengths);
      for (const [row, bytes] of lengths.entries()) {
        const block = index.blockOf(row);
        const first = index.start(block);
        const from = offsets[row] ?? Number.NaN;
        expect(first.row <= row && first.offset <= from).toBe(true);
        expect(from + bytes < (index.end(block) ?? end)).toBe(true);
        expect(row - first.row).toBeLessThan(LIMITS.datasetBlockRows);
        if (first.row === row) continue;
        expect(from + bytes - first.offset).toBeLessThanOrEqual(LIMITS.datasetBlockBytes);
      }
    }),
    { numRuns: 30 },
  );
});
