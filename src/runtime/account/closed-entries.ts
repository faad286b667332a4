/** Entries that left the object with their months: read again from their copies in the object store. */
import type { LedgerEntry } from "../../contract/money.ts";
import type { EntriesQuery } from "../contract/money-wire.ts";
import { ledgerFileKey } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type { Books } from "./books.ts";
import type { CopyRow } from "./copies.ts";

/** Read by one call, of up to 1,000 entries each. */
export const FILES_A_CALL = 300;

interface Span {
  readonly first: number;
  readonly last: number;
}

/**
 * Newest first: what the query asks for of entries before this number, from at most `FILES_A_CALL` files. Those of one
 * rollout are found by its run.
 */
export async function closedEntries(
  env: Env,
  books: Books,
  query: EntriesQuery,
  before: number,
  limit: number,
): Promise<LedgerEntry[]> {
  const spans = spansOf(books, query, before);
  const found: LedgerEntry[] = [];
  const subrequests = new Subrequests();
  for (const file of filesOf(books, spans, before, FILES_A_CALL)) {
    const entries = await readFile(env, subrequests, books.owner(), file);
    found.push(...entries.filter((entry) => entry.number < before && fits(entry, query)).reverse());
    if (found.length >= limit) break;
  }
  return found.slice(0, limit);
}

/** In the order of their numbers. Throws where they are spread over more than `FILES_A_CALL` files. */
export async function closedEntriesOf(
  env: Env,
  books: Books,
  runId: string,
  sourceIds: ReadonlySet<string>,
  before: number,
): Promise<LedgerEntry[]> {
  const query = { before: null, limit: 0, kind: null, run_id: runId, source_id: null };
  const files = filesOf(books, spansOf(books, query, before), before, FILES_A_CALL + 1);
  if (files.length > FILES_A_CALL) {
    throw new RangeError(`the entries of ${runId} stand in more than ${FILES_A_CALL} files of closed months`);
  }
  const subrequests = new Subrequests();
  // What is not asked for is let go of file by file: together they may hold hundreds of thousands of entries.
  const read = await subrequests.six(files, async (file) => {
    const entries = await readFile(env, subrequests, books.owner(), file);
    return entries.filter((entry) => {
      return entry.number < before && entry.run_id === runId && sourceIds.has(entry.source_id);
    });
  });
  return read.flat().sort((one, other) => one.number - other.number);
}

/** Where entries may stand that fit the query; null: anywhere. */
function spansOf({ rows }: Books, { run_id, source_id, kind }: EntriesQuery, before: number): Span[] | null {
  if (run_id !== null) {
    const query =
      "select first_entry as first, last_entry as last from cursors where run_id = ? and first_entry is not null";
    return rows.all<{ first: number; last: number }>(query, run_id);
  }
  if (source_id !== null) return rows.all<{ first: number; last: number }>(NUMBERS_OF_SOURCE, source_id, before);
  if (kind === null || kind === "rollout" || kind === "rescore" || kind === "push") return null;
  return rows.all<{ first: number; last: number }>(NUMBERS_OF_KIND, kind, before);
}

const NUMBERS = "select number as first, number as last from sources where number is not null";
const NUMBERS_OF_SOURCE = `${NUMBERS} and source_id = ? and number < ? order by number desc limit ${FILES_A_CALL}`;
const NUMBERS_OF_KIND = `${NUMBERS} and kind = ? and number < ? order by number desc limit ${FILES_A_CALL}`;

/** The newest first. */
function filesOf({ copies }: Books, spans: readonly Span[] | null, before: number, limit: number): CopyRow[] {
  if (spans === null) return copies.filesBefore(before, limit);
  const files = new Map<number, CopyRow>();
  for (const { first, last } of spans) {
    for (const file of copies.filesWithin(first, Math.min(last, before - 1), limit)) files.set(file.first_entry, file);
  }
  return [...files.values()].sort((one, other) => other.first_entry - one.first_entry).slice(0, limit);
}

async function readFile(env: Env, subrequests: Subrequests, orgId: string, file: CopyRow): Promise<LedgerEntry[]> {
  const object = await subrequests.fetch(() => env.STORE.get(ledgerFileKey(orgId, file)));
  if (object === null) throw new Error(`the copy of entries ${file.first_entry} to ${file.last_entry} is gone`);
  const lines = (await object.text()).split("\n");
  return lines.filter((line) => line !== "").map((line): LedgerEntry => JSON.parse(line));
}

function fits(entry: LedgerEntry, { kind, run_id, source_id }: EntriesQuery): boolean {
  return (
    (kind === null || entry.kind === kind) &&
    (run_id === null || entry.run_id === run_id) &&
    (source_id === null || entry.source_id === source_id)
  );
}
