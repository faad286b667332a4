/** prime-rl's bytes: two recorded messages, the golden row, and the invariants of packing. */
import { decode } from "@msgpack/msgpack";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  dummyOf,
  encodeMicroBatch,
  listHeader,
  type MicroBatch,
  packed,
} from "../../../../src/core/training/formats/micro-batch.ts";
import { packRows, packsOfRank } from "../../../../src/core/training/formats/packing.ts";
import { sha256Hex } from "../digest.ts";
import { creditedRow, goldenRow } from "./golden-row.ts";
import golden from "./prime-rl.json" with { type: "json" };

const SIZES = { seq_len: 8, padTo: 1 };

function message(batches: readonly MicroBatch[]): Uint8Array<ArrayBuffer> {
  const parts = [listHeader(batches.length), ...batches.flatMap((batch) => [...encodeMicroBatch(batch)])];
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

const hexOf = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

const three = packed(
  [
    creditedRow(3, {
      token_ids: Int32Array.of(1, 2, 300),
      logprobs: Float32Array.of(0, -0.25, -1.5),
    }),
  ],
  SIZES,
);

test.each([
  ["named", three],
  ["plain", { ...three, trace_ids: null, branch_indices: null }],
] as const)("the recorded message with %s rows is reproduced byte by byte", async (name, batch) => {
  const bytes = message([batch]);
  expect(hexOf(bytes)).toBe(golden[name].hex);
  expect(bytes.length).toBe(golden[name].bytes);
  expect(await sha256Hex(bytes)).toBe(golden[name].sha256);
});

test("the golden row is a micro batch of twenty values, each in prime-rl's position", () => {
  const row = packed([goldenRow({ index: 0, group: 0, member: 0 })], SIZES);
  expect(decode(message([row, dummyOf(1)]))).toEqual([golden.row, golden.dummy]);
});

test("packed rows have positions of their own, a long row is cut, and padding does not train", () => {
  const rl_weights = Float32Array.of(0, 2, 2);
  const batch = packed([creditedRow(3, { rl_weights }), creditedRow(12, { sample_id: "ro_1.4" })], {
    seq_len: 8,
    padTo: 4,
  });
  expect(batch).toMatchObject({
    input_ids: [7, 8, 9, 7, 8, 9, 10, 11, 12, 13, 14, 1],
    loss_mask: [0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0].map((bit) => bit === 1),
    position_ids: [0, 1, 2, 0, 1, 2, 3, 4, 5, 6, 7, 0],
    sequence_lengths: [3, 9],
    branch_indices: [0, 4],
  });
  expect(batch.env_names.slice(-2)).toEqual(["e", ""]);
  expect(batch.streams).toMatchObject({ rl_weights: [0, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0], ce_weights: null });
});

test("a row's weight is the weight of each of its sampled tokens, and its advantage is not changed", () => {
  const batch = packed([{ ...creditedRow(3), weight: 1.5 }, creditedRow(2)], SIZES);
  expect(batch.streams.rl_weights).toEqual([0, 1.5, 1.5, 1, 1]);
  expect(batch.advantages).toEqual([0, 0.5, 0.5, 0, 0.5]);
});

test.each([1, 2, 3, 8, 64, 4096])("a dummy has %i tokens, the requested multiple, and none of them trains", (padTo) => {
  const { streams, sequence_lengths, trace_ids, branch_indices, ...columns } = dummyOf(padTo);
  expect(Object.values(columns).map(({ length }) => length)).toEqual(Array(7).fill(padTo));
  expect([sequence_lengths, trace_ids, branch_indices]).toEqual([[padTo], null, null]);
  expect([columns.loss_mask.some(Boolean), columns.advantages.some(Boolean)]).toEqual([false, false]);
  expect([columns.position_ids.at(-1), Object.values(streams)]).toEqual([padTo - 1, [null, null, null, null]]);
});

test("each row is in one pack, no pack is longer than allowed, and open packs stay within their limit", () => {
  const lengths = fc.array(fc.integer({ min: 2, max: 40 }), { maxLength: 60 });
  const sizes = fc.record({ seq_len: fc.integer({ min: 8, max: 32 }), factor: fc.integer({ min: 1, max: 4 }) });
  fc.assert(
    fc.property(lengths, sizes, (given, { seq_len, factor }) => {
      const openTokens = seq_len * factor;
      const packs = packRows(given, { seq_len, openTokens });
      const cut = (row: number) => Math.min(given[row] ?? 0, seq_len);
      const tokensOf = (rows: readonly number[]) => rows.reduce((sum, row) => sum + cut(row), 0);
      expect(packs.flat().sort((one, other) => one - other)).toEqual([...given.keys()]);
      expect(packs.every((rows) => tokensOf(rows) <= seq_len)).toBe(true);
      for (const row of given.keys()) {
        const begun = packs.filter((rows) => (rows[0] ?? 0) <= row && (rows.at(-1) ?? 0) >= row);
        expect(tokensOf(begun.flatMap((rows) => rows.filter((one) => one <= row)))).toBeLessThanOrEqual(openTokens);
      }
    }),
    { numRuns: 50 },
  );
});

test("a row goes into the first pack with room", () => {
  expect(packRows([5, 6, 3, 2, 8], { seq_len: 8, openTokens: 64 })).toEqual([[0, 2], [1, 3], [4]]);
});

test("full packs take none of the space for open ones, and the fullest open pack is closed for more", () => {
  expect(packRows([8, 8, 8, 5, 3], { seq_len: 8, openTokens: 16 })).toEqual([[0], [1], [2], [3, 4]]);
  expect(packRows([5, 3, 5, 3], { seq_len: 8, openTokens: 8 })).toEqual([
    [0, 1],
    [2, 3],
  ]);
  // 6 and 4 tokens are open, and 5 more are too many: the pack of 6 is closed, so the last row goes to the other one.
  expect(packRows([6, 4, 5, 2], { seq_len: 8, openTokens: 12 })).toEqual([[0], [2], [1, 3]]);
});

test("packing is fast both if all packs stay open and if each is full at once", () => {
  const packed = (length: number, seq_len: number) =>
    packRows(Array<number>(100_000).fill(length), { seq_len, openTokens: 1_048_576 }).length;
  expect([packed(2, 3), packed(1, 2)]).toEqual([100_000, 50_000]);
});

test("all ranks have the same number of packs; missing ones are dummies", () => {
  expect([0, 1, 2].map((rank) => packsOfRank(["a", "b", "c", "d"], rank, 3))).toEqual([
    ["a", "d"],
    ["b", null],
    ["c", null],
  ]);
  expect(packsOfRank([], 0, 2)).toEqual([null]);
});

test.each([
  [3, "93"],
  [16, "dc0010"],
  [70_000, "dd00011170"],
])("the header of a list of %i is msgpack's", (count, hex) => {
  expect(hexOf(listHeader(count))).toBe(hex);
});
