/**
 * Rows of a stored file, by number, without reading the whole of it.
 *
 * A file with an index is read in blocks of 256 rows, by one ranged get each; one without (rows that came with a run) is
 * a single block. Rollouts of a run ask for neighbours, so small blocks stay in memory, and of a large one the places of
 * its rows: a row of it is one more ranged get, and no block however large is held.
 */
import { LIMITS } from "../core/limits.ts";
import { chunksOf } from "./byte-chunks.ts";
import { DatasetIndex } from "./dataset-index.ts";
import { Recent } from "./recent.ts";
import { RowLines } from "./row-lines.ts";
import type { Subrequests } from "./subrequests.ts";

/** Where the rows are: two keys of R2. */
export interface RowsFile {
  readonly key: string;
  readonly index_key?: string | undefined;
}

export interface RowText {
  readonly row: number;
  readonly text: string;
}

/** The file or its index is not in the object store: no row of it can be read, now or later. */
export class RowsMissing extends Error {
  override readonly name = "RowsMissing";

  constructor(key: string) {
    super(`the rows of the dataset are gone: ${key}`);
  }
}

interface Block {
  readonly from: number;
  /** Of each row: where it begins, counted from the block, and its length in bytes. */
  readonly places: readonly (readonly [from: number, length: number])[];
  /** Null for a block that is too large to keep. */
  readonly bytes: Uint8Array | null;
}

const BLOCK_KEPT_BYTES = 1024 * 1024;
/** Per isolate: 16 MiB of blocks at most, and 1 MiB for the index of the largest file. */
const blocks = new Recent<Block>(16);
const indexes = new Recent<DatasetIndex>(8);
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The JSON text of each of these rows. Throws `RowsMissing`, or `RangeError` for a row the file does not have. */
export async function readRowTexts(
  env: Env,
  file: RowsFile,
  rows: Iterable<number>,
  subrequests: Subrequests,
): Promise<ReadonlyMap<number, string>> {
  const index = await indexOf(env, file, subrequests);
  const rowsPerBlock = index === null ? Number.POSITIVE_INFINITY : LIMITS.datasetIndexRows;
  const byBlock = Map.groupBy(new Set(rows), (row) => Math.floor(row / rowsPerBlock));
  const texts = new Map<number, string>();
  await subrequests.six([...byBlock], async ([number, members]) => {
    const block = await blockOf(env, file, index, number, subrequests);
    for (const row of members) {
      const place = block.places[row % rowsPerBlock];
      if (place === undefined) throw new RangeError(`${file.key} has no row ${row}`);
      texts.set(row, await textAt(env, file, block, place, subrequests));
    }
  });
  return texts;
}

/** The rows from `first` on, as long as they are asked for. One ranged get. */
export async function* rowsFrom(
  env: Env,
  file: RowsFile,
  first: number,
  subrequests: Subrequests,
): AsyncGenerator<RowText> {
  const index = await indexOf(env, file, subrequests);
  const block = index === null ? 0 : Math.floor(first / LIMITS.datasetIndexRows);
  const { from } = index === null ? { from: 0 } : index.range(block);
  const object = await subrequests.fetch(() =>
    env.STORE.get(file.key, { range: { offset: from } }),
  );
  if (object === null) throw new RowsMissing(file.key);
  const start = { offset: from, row: block * LIMITS.datasetIndexRows };
  for await (const { row, bytes } of linesOf(object.body, start)) {
    if (row >= first) yield { row, text: decoder.decode(bytes).trim() };
  }
}

async function* linesOf(body: ReadableStream<Uint8Array>, start: { offset: number; row: number }) {
  const lines = new RowLines(LIMITS.taskRowBytes, start);
  for await (const chunk of chunksOf(body)) yield* lines.push(chunk);
  yield* lines.end();
}

async function indexOf(
  env: Env,
  { index_key }: RowsFile,
  subrequests: Subrequests,
): Promise<DatasetIndex | null> {
  if (index_key === undefined) return null;
  const known = indexes.get(index_key);
  if (known !== undefined) return known;
  const bytes = await subrequests.fetch(async () => {
    const object = await env.STORE.get(index_key);
    return object === null ? null : await object.arrayBuffer();
  });
  if (bytes === null) throw new RowsMissing(index_key);
  const index = new DatasetIndex(bytes);
  // The value is kept, not its promise: what one invocation reads another must not have to wait for.
  indexes.set(index_key, index);
  return index;
}

async function blockOf(
  env: Env,
  { key }: RowsFile,
  index: DatasetIndex | null,
  number: number,
  subrequests: Subrequests,
): Promise<Block> {
  const name = `${key} ${number}`;
  const known = blocks.get(name);
  if (known !== undefined) return known;
  const range = index === null ? { from: 0, to: null } : index.range(number);
  const block = await subrequests.fetch(() => readBlock(env, key, range));
  blocks.set(name, block);
  return block;
}

async function readBlock(
  env: Env,
  key: string,
  { from, to }: ReturnType<DatasetIndex["range"]>,
): Promise<Block> {
  const length = to === null ? {} : { length: to - from };
  const object = await env.STORE.get(key, { range: { offset: from, ...length } });
  if (object === null) throw new RowsMissing(key);
  const start = { offset: from, row: 0 };
  if ((to ?? object.size) - from > BLOCK_KEPT_BYTES) {
    const places: [number, number][] = [];
    for await (const { offset, bytes } of linesOf(object.body, start)) {
      places.push([offset - from, bytes.length]);
    }
    return { from, places, bytes: null };
  }
  const bytes = new Uint8Array(await object.arrayBuffer());
  const lines = new RowLines(LIMITS.taskRowBytes, start);
  const rows = [...lines.push(bytes), ...lines.end()];
  return { from, places: rows.map((row) => [row.offset - from, row.bytes.length]), bytes };
}

async function textAt(
  env: Env,
  { key }: RowsFile,
  block: Block,
  [from, length]: Block["places"][number],
  subrequests: Subrequests,
): Promise<string> {
  if (block.bytes !== null) return decoder.decode(block.bytes.subarray(from, from + length));
  const range = { offset: block.from + from, length };
  const bytes = await subrequests.fetch(async () => {
    const object = await env.STORE.get(key, { range });
    return object === null ? null : await object.arrayBuffer();
  });
  if (bytes === null) throw new RowsMissing(key);
  return decoder.decode(bytes);
}
