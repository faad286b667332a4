import { expect, test } from "vitest";
import { decodeRowStream, RowTooLongError } from "../../../src/core/training/row-stream.ts";
import { encodeRows, type SampleEncoding } from "../../../src/core/training/sample-row.ts";
import { GOLDEN_ROW } from "./formats/golden-row.ts";

const ROWS = [GOLDEN_ROW, { ...GOLDEN_ROW, sample_id: "s_02" }, { ...GOLDEN_ROW, sample_id: "s_03" }];

/** The bytes in pieces of `size` bytes. */
async function* pieces(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(encoding: SampleEncoding, size: number, most: number) {
  const rows = [];
  for await (const row of decodeRowStream(pieces(encodeRows(ROWS, encoding), size), encoding, most)) rows.push(row);
  return rows;
}

test.each(["jsonl", "msgpack"] as const)(
  "rows of %s are decoded one by one, wherever the stream is cut",
  async (encoding) => {
    for (const size of [1, 7, 100_000]) expect(await read(encoding, size, 1000), String(size)).toEqual(ROWS);
  },
);

test.each(["jsonl", "msgpack"] as const)("a row of %s above the size limit is refused", async (encoding) => {
  await expect(read(encoding, 10, 100)).rejects.toThrow(RowTooLongError);
});
