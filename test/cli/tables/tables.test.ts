import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { type Bytes, openFile } from "../../../src/cli/tables/bytes.ts";
import { parseColumns, type Row } from "../../../src/cli/tables/columns.ts";
import { convertTable, jsonLines } from "../../../src/cli/tables/local-table.ts";
import { parquetPieces } from "../../../src/cli/tables/parquet.ts";
import { formatOf, taskRows } from "../../../src/cli/tables/table.ts";

const FIXTURES = join(import.meta.dirname, "../../fixtures/tables");
const folder = mkdtempSync(join(tmpdir(), "tables-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The bytes of a text, in chunks of this length. */
function bytesOf(text: string, name: string, chunk = 3): Bytes {
  const bytes = Buffer.from(text);
  return {
    name,
    size: bytes.length,
    read: async (start, end) => new Uint8Array(bytes.subarray(start, end)).buffer,
    stream: async function* (start) {
      for (let at = start; at < bytes.length; at += chunk) yield bytes.subarray(at, at + chunk);
    },
  };
}

async function rowsOf(bytes: Bytes, columns: readonly string[] = [], from = 0): Promise<Row[]> {
  const rows: Row[] = [];
  const pieces = taskRows(bytes, formatOf(bytes.name) ?? "jsonl", parseColumns(columns), from);
  for await (const piece of pieces) rows.push(...piece.rows);
  return rows;
}

async function fixtureRows(name: string, columns: readonly string[] = [], from = 0): Promise<Row[]> {
  await using file = await openFile(join(FIXTURES, name), "file");
  return await rowsOf(file, columns, from);
}

test("a Parquet file gives rows of JSON: nested columns, lists, dates, large whole numbers, NaN and nulls", async () => {
  const rows = await fixtureRows("sums.snappy.parquet");
  expect(rows).toHaveLength(40);
  expect(rows.slice(0, 2)).toEqual([
    {
      ...{ question: "What is 0 + 0?", answer: "0 + 0 = 0.\n#### 0", id: "1152921504606846977", meta: null },
      ...{ choices: ["0", "0"], score: 0, day: "2026-01-01T00:00:00.000Z", at: "2026-01-01T12:00:00.000Z" },
    },
    {
      ...{ question: "What is 1 + 1?", answer: "1 + 1 = 2.\n#### 2", id: 1, score: null, choices: ["1", "2"] },
      ...{ meta: { level: 1, source: { name: "own", tags: ["a"] } } },
      ...{ day: "2026-01-02T00:00:00.000Z", at: "2026-01-01T12:00:01.000Z" },
    },
  ]);
});

test("fields come from columns, from parts of nested columns, and from items of lists", async () => {
  const columns = ["question,level=meta.level,second=choices.1", "tags = meta.source.tags"];
  const rows = await fixtureRows("sums.snappy.parquet", columns);
  expect(rows[0]).toEqual({ question: "What is 0 + 0?", level: null, second: "0", tags: null });
  expect(rows[8]).toEqual({ question: "What is 8 + 8?", level: 3, second: "16", tags: ["a", "b"] });
});

test("a Parquet file continues after any row, also within a row group", async () => {
  const all = await fixtureRows("sums.snappy.parquet");
  for (const from of [1, 15, 22, 39, 40]) {
    expect(await fixtureRows("sums.snappy.parquet", [], from)).toEqual(all.slice(from));
  }
});

test("a large row group comes in pieces, and only the pages of the wanted rows are read", async () => {
  await using file = await openFile(join(FIXTURES, "pages.parquet"), "file");
  let read = 0;
  const count = (start: number, end: number) => {
    read += end - start;
    return file.read(start, end);
  };
  const piecesOf = async (from: number, wanted?: number) => {
    read = 0;
    const pieces: unknown[][] = [];
    for await (const { rows, next } of taskRows({ ...file, read: count }, "parquet", null, from, wanted)) {
      pieces.push([rows.length, rows[0]?.["n"], next]);
    }
    return pieces;
  };
  expect(await piecesOf(0)).toEqual([
    [1000, 0, 1000],
    [1000, 1000, 2000],
    [500, 2000, 2500],
  ]);
  const whole = read;
  expect(await piecesOf(1700, 5)).toEqual([[5, 1700, 1705]]);
  expect(read).toBeLessThan(whole);
});

test("of a row group that is too large for the memory, a part is read at once by its page index", async () => {
  await using file = await openFile(join(FIXTURES, "pages.parquet"), "file");
  const piecesOf = async (from: number, to: number, most?: number) => {
    const [rows, sizes]: [Row[], number[]] = [[], []];
    for await (const piece of parquetPieces(file, null, from, to, most)) {
      rows.push(...piece.rows);
      sizes.push(piece.rows.length);
      expect(piece.next).toBe(from + rows.length);
    }
    return { rows, sizes };
  };
  const { rows: all } = await piecesOf(0, Infinity);
  const most = 40_000;
  expect(await piecesOf(0, Infinity, most)).toEqual({ rows: all, sizes: [799, 799, 799, 103] });
  expect(await piecesOf(700, 1900, most)).toEqual({ rows: all.slice(700, 1900), sizes: [799, 401] });
  expect(await piecesOf(0, 5, most)).toEqual({ rows: all.slice(0, 5), sizes: [5] });
  await expect(piecesOf(0, 5, 1000)).rejects.toThrow(/more than 1 MiB must be read at once: choose fewer columns/);
});

test("pages that are small in the file and large when they are unpacked are refused", async () => {
  await using file = await openFile(join(FIXTURES, "pages.parquet"), "file");
  const first = async (most: number) => await parquetPieces(file, null, 0, 5, most).next();
  await expect(first(4000)).rejects.toThrow(/pages.parquet: more than 1 MiB must be unpacked at once: choose fewer/);
  expect((await first(20_000)).done).toBe(false);
});

test("a row group that is too large for the memory and has no page index is refused, unless few columns are read", async () => {
  await using file = await openFile(join(FIXTURES, "sums.none.parquet"), "file");
  const read = async (columns: readonly string[]) => {
    for await (const { rows } of parquetPieces(file, parseColumns(columns), 0, 1, 300)) return rows;
    return [];
  };
  await expect(read([])).rejects.toThrow(
    /sums.none.parquet: a row group holds 1 MiB in these columns, more than the limit of 1 MiB without a page index: choose fewer columns with --columns, or write the file again with a page index$/,
  );
  expect(await read(["question"])).toEqual([{ question: "What is 0 + 0?" }]);
});

test("rows become texts of a limited length, whatever their number", () => {
  const row = { text: "x".repeat(3 * 1024 * 1024) };
  const texts = [...jsonLines([row, row, row])];
  expect(texts).toHaveLength(2);
  expect(texts.join("")).toBe(`${JSON.stringify(row)}\n`.repeat(3));
});

test.each(["zstd", "gzip", "brotli", "none"])("Parquet compressed with %s is read", async (codec) => {
  const rows = await fixtureRows(`sums.${codec}.parquet`);
  expect(rows).toHaveLength(6);
  expect(rows[5]).toEqual({ question: "What is 5 + 5?", answer: "5 + 5 = 10.\n#### 10", choices: ["5", "10"] });
});

test("Parquet with a compression that is not supported is refused with its name", async () => {
  await expect(fixtureRows("sums.lz4.parquet")).rejects.toThrow(/sums.lz4.parquet: cannot be read as Parquet: .*LZ4/);
});

test("a file that is cut, or is not Parquet, is refused with its name", async () => {
  const whole = readFileSync(join(FIXTURES, "sums.none.parquet"));
  for (const content of [whole.subarray(0, 500), whole.subarray(-200), Buffer.from("no Parquet"), Buffer.from("")]) {
    writeFileSync(join(folder, "broken.parquet"), content);
    await using file = await openFile(join(folder, "broken.parquet"), "file");
    await expect(rowsOf(file)).rejects.toThrow(/broken.parquet: cannot be read as Parquet/);
  }
});

test("binary data is refused with the column, and text that is not marked as text is read", async () => {
  await expect(fixtureRows("images.parquet")).rejects.toThrow(/the column of image holds binary data/);
  expect(await fixtureRows("images.parquet", ["label"])).toEqual([{ label: "cat" }]);
  expect(await fixtureRows("unmarked.parquet")).toEqual([{ text: "plain" }, { text: "text" }]);
});

test("an unknown column is refused with the columns that there are", async () => {
  await expect(fixtureRows("sums.none.parquet", ["question=problem"])).rejects.toThrow(
    /has no column problem; it has question, answer, choices$/,
  );
  await expect(fixtureRows("sums.snappy.parquet", ["a=meta.nope"])).rejects.toThrow(
    /meta, meta.level, meta.source, meta.source.name/,
  );
  await expect(rowsOf(bytesOf('{"a":{"b":1}}\n', "x.jsonl"), ["b"])).rejects.toThrow(/no column b; it has a, a.b/);
  await expect(rowsOf(bytesOf("a,b\n1,2\n", "x.csv"), ["c"])).rejects.toThrow(/no column c; it has a, b/);
});

test.each([
  [["a=b=c,=d"], /"=d" is not FIELD=COLUMN/],
  [["a="], /"a=" is not FIELD=COLUMN/],
  [["a=x,a=y"], /the field a is given twice/],
  [[""], /is not FIELD=COLUMN/],
])("--columns %j is refused", (given, message) => {
  expect(() => parseColumns(given)).toThrow(message);
});

test("JSON lines are read in chunks of any length, and continue at the byte where a piece ended", async () => {
  const lines = ['\uFEFF{"a":"ä€😀"}', "", '{"a":2}\r', '{"a":{"b":[1,{"c":null}]}}'];
  const text = lines.join("\n");
  for (const chunk of [1, 2, 5, 1000]) {
    const rows = await rowsOf(bytesOf(text, "x.jsonl", chunk));
    expect(rows).toEqual([{ a: "ä€😀" }, { a: 2 }, { a: { b: [1, { c: null }] } }]);
  }
  const after = Buffer.byteLength(`${lines[0]}\n\n`);
  expect(await rowsOf(bytesOf(text, "x.jsonl"), [], after)).toHaveLength(2);
  expect(await rowsOf(bytesOf("", "x.jsonl"))).toEqual([]);
});

test.each([
  ["[1]\n", /the row that ends at byte 4 is not a JSON object/],
  ['{"a":1}\n{"a":\n', /the row that ends at byte 14 is not JSON/],
  ['{"a":12345678901234567890}\n', /12345678901234567890/],
  ["\xff", null],
])("%j as a line is refused", async (text, message) => {
  const bytes =
    message === null ? { ...bytesOf("x", "x.jsonl"), stream: () => invalidUtf8() } : bytesOf(text, "x.jsonl");
  await expect(rowsOf(bytes)).rejects.toThrow(message ?? /the row at byte 0 is not UTF-8/);
});

async function* invalidUtf8() {
  yield new Uint8Array([0x7b, 0xff, 0x7d]);
}

test("a line without an end is refused before it fills the memory", async () => {
  const endless: Bytes = {
    ...bytesOf("", "endless.jsonl"),
    stream: async function* () {
      const chunk = new Uint8Array(1024 * 1024).fill(97);
      for (;;) yield chunk;
    },
  };
  await expect(rowsOf(endless)).rejects.toThrow(/the row at byte 0 is longer than 16 MiB/);
});

test("CSV has quoted fields with separators, quotes and lines, and every value is a text", async () => {
  const text = 'question,answer,note\n"What, then?","He said ""7"".\nOr 8.",\r\n1,02,"x"\n';
  for (const chunk of [1, 7, 1000]) {
    expect(await rowsOf(bytesOf(text, "x.csv", chunk))).toEqual([
      { question: "What, then?", answer: 'He said "7".\nOr 8.', note: "" },
      { question: "1", answer: "02", note: "x" },
    ]);
  }
  expect(await rowsOf(bytesOf("a\tb\n1,5\t2\n", "x.tsv"))).toEqual([{ a: "1,5", b: "2" }]);
});

test("a quote opens a quoted field only where a field begins, also after a byte order mark", async () => {
  const pipes = 'prompt\nA 5" pipe\nA plain one\nA 6" pipe\n"a ""b""\nc"\n""\nlast\n';
  const prompts = ['A 5" pipe', "A plain one", 'A 6" pipe', 'a "b"\nc', "", "last"];
  for (const chunk of [1, 7, 1000]) {
    expect(await rowsOf(bytesOf("a,b\n\n1,2\r\n\r\n", "x.csv", chunk))).toEqual([{ a: "1", b: "2" }]);
    expect(await rowsOf(bytesOf(pipes, "x.csv", chunk))).toEqual(prompts.map((prompt) => ({ prompt })));
    expect(await rowsOf(bytesOf('\uFEFF"a\nb"\tc\n5"\t"6""\n"\n', "x.tsv", chunk))).toEqual([
      { "a\nb": '5"', c: '6"\n' },
    ]);
  }
});

test.each([
  ["", /is empty; the first row must name the columns/],
  ["a,,b\n", /the first row must name every column/],
  ["a,a\n1,2\n", /names the column a twice/],
  ["a,b\n1\n", /the row that ends at byte 6 has 1 fields; the first row names 2 columns/],
  ['a,b\n""\n', /the row that ends at byte 7 has 1 fields; the first row names 2 columns/],
  ['a,b\n"1"\0,2\n', /the row at byte 4 has a NUL in a quoted field or after it/],
  ['a,b\n"1"x,2\n', /the row at byte 4 has text after a closing quote/],
  ['a,b\n1,2\n1,"""2"" ""x"y"\n', /the row at byte 8 has text after a closing quote/],
  ['\uFEFF"a"b,c\n', /the row at byte 3 has text after a closing quote/],
  ['a,b\n"1,2\n', /the row at byte 4 has a quote that is not closed/],
])("CSV %j is refused", async (text, message) => {
  await expect(rowsOf(bytesOf(text, "x.csv"))).rejects.toThrow(message);
});

test("CSV continues at the byte where any row ended, also after a byte order mark", async () => {
  const rows = ['"1, ""é""\n",a\r\n', "2,b\n", "\n", '"3",""\n', "4,€"];
  const expected = [
    { n: '1, "é"\n', x: "a" },
    { n: "2", x: "b" },
    { n: "3", x: "" },
    { n: "4", x: "€" },
  ];
  const text = `\uFEFFn,"x"\r\n${rows.join("")}`;
  const starts = [0, 0, 1, 2, 2, 3, 4].map((left, at) => [left, at === 0 ? 0 : rows.slice(at - 1).join("")] as const);
  for (const [left, rest] of starts) {
    const from = rest === 0 ? 0 : Buffer.byteLength(text) - Buffer.byteLength(rest);
    for (const chunk of [1, 1000]) {
      expect(await rowsOf(bytesOf(text, "x.csv", chunk), [], from)).toEqual(expected.slice(left));
    }
  }
});

test("CSV that is not UTF-8 is refused with the byte where its row begins", async () => {
  const text = Buffer.concat([Buffer.from("a,b\n1,2\n3,"), Buffer.from([0xff, 10])]);
  const stream = async function* (start: number) {
    yield text.subarray(start);
  };
  const bytes = { ...bytesOf("a,b\n", "x.csv"), stream };
  await expect(rowsOf(bytes)).rejects.toThrow(/x.csv: the row at byte 8 is not UTF-8/);
});

test.each([
  ["one field", "is longer than 16 MiB", "a", "a"],
  ["lines in a quoted field", "is longer than 16 MiB", '"', "\n"],
  ["empty fields", "has more than 100000 fields", ",", ","],
])("a row of CSV without an end, of %s, is refused before it fills the memory", async (_, message, first, rest) => {
  let sent = 0;
  const endless: Bytes = {
    ...bytesOf("a,b\n", "endless.csv"),
    stream: async function* (start) {
      if (start === 0) yield Buffer.from("a,b\n");
      yield Buffer.from(first);
      for (; ; sent += 1) yield Buffer.alloc(1024 * 1024, rest);
    },
  };
  await expect(rowsOf(endless)).rejects.toThrow(`endless.csv: the row at byte 4 ${message}`);
  expect(sent).toBeLessThan(40);
});

test("an error of the source is not an error of the CSV, and a reader that stops ends the source", async () => {
  let ended = false;
  const stream = async function* (start: number) {
    try {
      if (start === 0) yield Buffer.from("a,b\n");
      for (;;) yield Buffer.from(`1,${"2".repeat(100_000)}\n`);
    } finally {
      ended = true;
    }
  };
  const bytes = { ...bytesOf("a,b\n", "x.csv"), stream };
  for await (const _ of taskRows(bytes, "csv", null, 4)) break;
  await expect.poll(() => ended).toBe(true);
  const lost = new TypeError("the connection broke");
  const broken = async function* (start: number) {
    if (start === 0) yield Buffer.from("a,b\n");
    yield Buffer.from("1,2\n3,");
    throw lost;
  };
  await expect(rowsOf({ ...bytes, stream: broken })).rejects.toBe(lost);
});

test("a converted table is the same JSON lines each time, and is deleted after its use", async () => {
  const source = join(FIXTURES, "sums.zstd.parquet");
  const contents = await Promise.all(
    [0, 1].map(async () => {
      using converted = await convertTable(source, "file");
      return { file: converted.file, text: readFileSync(converted.file, "utf8") };
    }),
  );
  expect(contents[0]?.text).toBe(contents[1]?.text);
  expect(contents[0]?.text.split("\n")).toHaveLength(7);
  for (const { file } of contents) expect(() => readFileSync(file)).toThrow("ENOENT");
});

test("a table that does not exist is refused with the name of the argument", async () => {
  await expect(convertTable(join(folder, "none.csv"), "dataset")).rejects.toMatchObject({
    failure: { param: "dataset", message: expect.stringContaining("no such file") },
  });
});
