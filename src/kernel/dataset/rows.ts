/**
 * Reads rows of a stored file by number, without reading the whole file.
 *
 * A file with an index is read block by block, with one ranged get for each. A file without an index (rows that came
 * with a run) is a single block. Rollouts of a run read neighbouring rows, so blocks are kept in memory, except a block
 * that is a single long row.
 */
import { LIMITS } from "../../contract/limits.ts";
import { chunksOf } from "../kit/body-chunks.ts";
import { LruCache } from "../kit/caches.ts";
import { RowLines } from "../kit/row-lines.ts";
import type { Subrequests } from "../kit/subrequests.ts";

const ENTRY_BYTES = 8;

export interface BlockStart {
  readonly row: number;
  /** Offset of the row's first byte in the file. */
  readonly offset: number;
}

/** Where the rows are: two keys of R2. */
export interface RowsFile {
  readonly key: string;
  readonly index_key?: string | undefined;
}

export interface RowText {
  readonly row: number;
  readonly text: string;
}

/** The file or its index is not in the object store: none of its rows can be read, now or later. */
export class RowsMissing extends Error {
  override readonly name = "RowsMissing";

  constructor(key: string) {
    super(`the rows of the dataset are missing: ${key}`);
  }
}

/** Texts of rows, by row. */
type Block = ReadonlyMap<number, string>;

/**
 * For each isolate, by key in R2, which begins with the owner's: at most 16 MiB of blocks, and at most 2 MiB for the
 * index of a file with the shortest rows.
 */
const blocks = new LruCache<Block>(16);
const indexes = new LruCache<DatasetIndex>(8);
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The JSON text of each of these rows. Throws `RowsMissing`, or `RangeError` if the file does not have a row. */
export async function readRowTexts(
  env: Env,
  file: RowsFile,
  rows: Iterable<number>,
  subrequests: Subrequests,
): Promise<ReadonlyMap<number, string>> {
  const index = await indexOf(env, file, subrequests);
  const byBlock = Map.groupBy(new Set(rows), (row) => index.blockOf(row));
  const texts = new Map<number, string>();
  await subrequests.six([...byBlock], async ([number, members]) => {
    const block = await blockOf(env, file, index, number, subrequests);
    for (const row of members) {
      const text = block.get(row);
      if (text === undefined) throw new RangeError(`${file.key} has no row ${row}`);
      texts.set(row, text);
    }
  });
  return texts;
}

/** How many blocks these rows are in, which is the number of reads. */
export async function blocksOf(
  env: Env,
  file: RowsFile,
  rows: Iterable<number>,
  subrequests: Subrequests,
): Promise<number> {
  const index = await indexOf(env, file, subrequests);
  return new Set(Array.from(rows, (row) => index.blockOf(row))).size;
}

/** The rows from `first` on, read as they are consumed. One ranged get. Throws `RowsMissing`. */
export async function* rowsFrom(
  env: Env,
  file: RowsFile,
  first: number,
  subrequests: Subrequests,
): AsyncGenerator<RowText> {
  const index = await indexOf(env, file, subrequests);
  const start = index.start(index.blockOf(first));
  const object = await subrequests.fetch(() => env.STORE.get(file.key, { range: { offset: start.offset } }));
  if (object === null) throw new RowsMissing(file.key);
  for await (const { row, bytes } of linesOf(object.body, start)) {
    if (row >= first) yield { row, text: textOf(bytes) };
  }
}

async function* linesOf(body: ReadableStream<Uint8Array>, start: { offset: number; row: number }) {
  const lines = new RowLines(LIMITS.taskRowBytes, start);
  for await (const chunk of chunksOf(body)) yield* lines.push(chunk);
  yield* lines.end();
}

function textOf(line: Uint8Array): string {
  return decoder.decode(line).trim();
}

async function indexOf(env: Env, { index_key }: RowsFile, subrequests: Subrequests): Promise<DatasetIndex> {
  if (index_key === undefined) return ONE_BLOCK;
  const known = indexes.get(index_key);
  if (known !== undefined) return known;
  const bytes = await subrequests.fetch(async () => {
    const object = await env.STORE.get(index_key);
    return object === null ? null : await object.arrayBuffer();
  });
  if (bytes === null) throw new RowsMissing(index_key);
  const index = new DatasetIndex(bytes);
  // The value is stored, not its promise, so that one invocation never waits for the read of another.
  indexes.set(index_key, index);
  return index;
}

async function blockOf(
  env: Env,
  { key }: RowsFile,
  index: DatasetIndex,
  number: number,
  subrequests: Subrequests,
): Promise<Block> {
  const name = `${key} ${number}`;
  const known = blocks.get(name);
  if (known !== undefined) return known;
  const { block, characters } = await subrequests.fetch(() => readBlock(env, key, index, number));
  if (characters <= LIMITS.datasetBlockBytes) blocks.set(name, block);
  return block;
}

async function readBlock(env: Env, key: string, index: DatasetIndex, number: number) {
  const start = index.start(number);
  const end = index.end(number);
  const length = end === null ? {} : { length: end - start.offset };
  const object = await env.STORE.get(key, { range: { offset: start.offset, ...length } });
  if (object === null) throw new RowsMissing(key);
  const block = new Map<number, string>();
  let characters = 0;
  for await (const { row, bytes } of linesOf(object.body, start)) {
    const text = textOf(bytes);
    block.set(row, text);
    characters += text.length;
  }
  return { block, characters };
}

/**
 * Where the blocks of an uploaded file begin: for each block, the number of its first row and the byte offset of that
 * row, as two unsigned 32-bit numbers, little endian. That is enough for 1 GiB of rows, the most that a dataset may
 * have.
 *
 * A block has at most 256 rows and 1 MiB, or is one longer row. It is read whole to read one of its rows.
 */

/** Builds the index while the rows are read. */
export class IndexWriter {
  readonly #starts: BlockStart[] = [];

  /** Must be called for every row, in order. */
  note(row: number, offset: number, bytes: number): void {
    const last = this.#starts.at(-1);
    const fits =
      last !== undefined &&
      row - last.row < LIMITS.datasetBlockRows &&
      offset + bytes - last.offset <= LIMITS.datasetBlockBytes;
    if (!fits) this.#starts.push({ row, offset });
  }

  encode(): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(this.#starts.length * ENTRY_BYTES);
    const view = new DataView(bytes.buffer);
    for (const [block, { row, offset }] of this.#starts.entries()) {
      view.setUint32(block * ENTRY_BYTES, row, true);
      view.setUint32(block * ENTRY_BYTES + 4, offset, true);
    }
    return bytes;
  }
}

export class DatasetIndex {
  readonly #view: DataView;

  constructor(bytes: ArrayBuffer) {
    this.#view = new DataView(bytes);
  }

  /** The block that has the row, or that would have it if the file were longer. */
  blockOf(row: number): number {
    let [low, high] = [0, this.#view.byteLength / ENTRY_BYTES];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.start(middle).row <= row) low = middle;
      else high = middle;
    }
    return low;
  }

  start(block: number): BlockStart {
    const at = block * ENTRY_BYTES;
    return { row: this.#view.getUint32(at, true), offset: this.#view.getUint32(at + 4, true) };
  }

  /** Where the block ends (exclusive); null for the last block, which ends with the file. */
  end(block: number): number | null {
    const next = block + 1;
    return next * ENTRY_BYTES < this.#view.byteLength ? this.start(next).offset : null;
  }
}

const ONE_BLOCK = oneBlock();

function oneBlock(): DatasetIndex {
  const index = new IndexWriter();
  index.note(0, 0, 0);
  return new DatasetIndex(index.encode().buffer);
}
