import fc from "fast-check";
import { expect, test } from "vitest";
import { LineTooLong, RowLines } from "../../../src/kernel/kit/row-lines.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

interface Seen {
  readonly row: number;
  readonly line: number;
  readonly offset: number;
  readonly text: string;
}

function rowsOf(chunks: readonly Uint8Array[], limit = 100): Seen[] {
  const lines = new RowLines(limit);
  const seen: Seen[] = [];
  for (const source of [...chunks.map((chunk) => lines.push(chunk)), lines.end()]) {
    for (const { bytes, ...place } of source) seen.push({ ...place, text: decoder.decode(bytes) });
  }
  return seen;
}

const FILE = encoder.encode('\ufeff{"a":"é"}\r\n\n \t\r\n{"b":"\u{1f600}"}\n{"c":1}');
const ROWS = [
  { row: 0, line: 1, offset: 3, text: '{"a":"é"}\r' },
  { row: 1, line: 4, offset: 20, text: '{"b":"\u{1f600}"}' },
  { row: 2, line: 5, offset: 33, text: '{"c":1}' },
];

test("rows are numbered without blank lines, lines with them, and a byte order mark counts as neither", () => {
  expect(rowsOf([FILE])).toEqual(ROWS);
});

test("a file cut at any byte has the same rows", () => {
  for (let at = 0; at <= FILE.length; at += 1) {
    expect(rowsOf([FILE.subarray(0, at), FILE.subarray(at)])).toEqual(ROWS);
  }
  expect(rowsOf(Array.from(FILE, (_, at) => FILE.subarray(at, at + 1)))).toEqual(ROWS);
});

test("any text in chunks of any size gives the rows of its lines, at their offsets", () => {
  const line = fc.oneof(fc.constantFrom("", " ", "\r", "{}"), fc.string({ unit: "binary" }));
  const cuts = fc.infiniteStream(fc.integer({ min: 1, max: 9 }));
  fc.assert(
    fc.property(fc.array(line.map((text) => text.replaceAll("\n", " "))), cuts, (lines, sizes) => {
      const text = lines.join("\n").replace(/^\ufeff+/, "");
      const file = encoder.encode(text);
      const chunks: Uint8Array[] = [];
      for (let from = 0; from < file.length; ) {
        const to = from + (sizes.next().value ?? 1);
        chunks.push(file.subarray(from, to));
        from = to;
      }
      const rows = rowsOf(chunks, 10_000);
      // Through UTF-8, which has no lone surrogates.
      const expected = decoder
        .decode(file)
        .split("\n")
        .filter((part) => /[^ \t\r]/.test(part));
      expect(rows.map((row) => row.text)).toEqual(expected);
      for (const { offset, text: found } of rows) {
        const bytes = encoder.encode(found).length;
        expect(decoder.decode(file.subarray(offset, offset + bytes))).toBe(found);
      }
    }),
  );
});

test("a line of exactly the limit is a row, and a longer one is refused before its end", () => {
  const line = (bytes: number) => encoder.encode("x".repeat(bytes));
  expect(rowsOf([line(100)])).toHaveLength(1);
  expect(rowsOf([line(60), line(40), encoder.encode("\n")])).toHaveLength(1);
  const longer = () => rowsOf([encoder.encode("{}\n\n"), line(60), line(41)]);
  expect(longer).toThrow(LineTooLong);
  expect(longer).toThrow(expect.objectContaining({ row: 1, line: 3 }));
  expect(() => rowsOf([encoder.encode(`${"x".repeat(101)}\n`)])).toThrow(LineTooLong);
});
