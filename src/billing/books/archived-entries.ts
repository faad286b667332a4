/** Archived entries, read from their files in the object store, the newest first, a page of files at a time. */
import { LIMITS } from "../../contract/limits.ts";
import type { LedgerEntry } from "../../contract/money.ts";
import { runOfBatch } from "../../core/training/batch.ts";
import { ledgerFileKey } from "../../kernel/kit/names.ts";
import type { Rows } from "../../kernel/kit/rows.ts";
import { readId } from "../../kernel/kit/secrets.ts";
import { Subrequests } from "../../kernel/kit/subrequests.ts";
import type { EntriesPage, EntriesQuery } from "../rpc.ts";
import type { ArchivedFile } from "./archive.ts";
import type { Books } from "./books.ts";

/** Read by one call, of up to 1,000 entries each. */
const FILES_A_CALL = 300;

/** Which of them are wanted. */
export interface Sought {
  /** Those with lower numbers. */
  readonly before: number;
  readonly kind: EntriesQuery["kind"];
  readonly run_id: string | null;
  readonly source_ids: readonly string[] | null;
}

// A type and not an interface: SQLite's rows are records by name.
type Span = { first: number; last: number };

/** Where entries may stand. */
interface Places {
  /** Null: anywhere. */
  readonly spans: readonly Span[] | null;
  /** Below this number nothing was looked up; null: all was. */
  readonly floor: number | null;
}

/**
 * Reads until it has `most` entries, and then what was read with the last of them, or `FILES_A_CALL` files. All that is
 * sought from `next` on is here; null: all there is.
 */
export async function archivedEntries(env: Env, books: Books, sought: Sought, most: number): Promise<EntriesPage> {
  const { spans, floor } = placesOf(env, books, sought);
  const files = filesOf(books, spans, sought.before, floor ?? 1);
  const isSought = fitsTo(sought, floor ?? 1);
  const subrequests = new Subrequests();
  const entries: LedgerEntry[] = [];
  let next: number | null = sought.before;
  for (let at = 0; at < FILES_A_CALL && entries.length < most; at += LIMITS.parallelFetches) {
    const batch = files.slice(at, Math.min(at + LIMITS.parallelFetches, FILES_A_CALL));
    // What is not sought is let go of file by file: together they may hold hundreds of thousands of entries.
    const read = await subrequests.six(batch, async (file) => {
      const all = await readFile(env, subrequests, books.owner(), file);
      return all.filter(isSought).reverse();
    });
    entries.push(...read.flat());
    next = batch.at(-1)?.first_entry ?? null;
    if (at + batch.length >= files.length) return { entries, next: floor };
  }
  return { entries, next };
}

/**
 * What a run settled lies between the first and the last entry of its streams; what is posted once has its number. Of a
 * source that is a rollout or a batch its id says the run.
 */
function placesOf(env: Env, { rows }: Books, { before, kind, run_id, source_ids }: Sought): Places {
  if (run_id !== null) return { spans: spansOfRun(rows, run_id), floor: null };
  if (source_ids !== null) {
    const found = rows.all<Span>(NUMBERS_OF_SOURCES, JSON.stringify(source_ids), before);
    const runs = new Set(source_ids.map((id) => runOf(env, id)).filter((run) => run !== null));
    return { spans: [...found, ...[...runs].flatMap((run) => spansOfRun(rows, run))], floor: floorOf(found) };
  }
  if (kind === null || kind === "rollout" || kind === "rescore" || kind === "push") return { spans: null, floor: null };
  const found = rows.all<Span>(NUMBERS_OF_KIND, kind, before);
  return { spans: found, floor: floorOf(found) };
}

const NUMBERS = "select number as first, number as last from sources where number is not null";
const NEWEST = `and number < ? order by number desc limit ${FILES_A_CALL}`;
const NUMBERS_OF_SOURCES = `${NUMBERS} and source_id in (select value from json_each(?)) ${NEWEST}`;
const NUMBERS_OF_KIND = `${NUMBERS} and kind = ? ${NEWEST}`;
const SPANS =
  "select first_entry as first, last_entry as last from cursors where run_id = ? and first_entry is not null";

function spansOfRun(rows: Rows, run_id: string): Span[] {
  return rows.all<Span>(SPANS, run_id);
}

function floorOf(found: readonly Span[]): number | null {
  return found.length < FILES_A_CALL ? null : (found.at(-1)?.first ?? null);
}

function runOf(env: Env, sourceId: string): string | null {
  const parsed = readId(env, sourceId);
  return parsed?.kind === "rollout" ? parsed.runId : runOfBatch(sourceId);
}

/** The newest first; one more than a call reads, where there are more. */
function filesOf({ archive }: Books, spans: readonly Span[] | null, before: number, floor: number): ArchivedFile[] {
  const limit = FILES_A_CALL + 1;
  if (spans === null) return archive.filesBefore(before, limit);
  const files = new Map<number, ArchivedFile>();
  for (const { first, last } of spans) {
    const within = archive.filesWithin(Math.max(first, floor), Math.min(last, before - 1), limit);
    for (const file of within) files.set(file.first_entry, file);
  }
  return [...files.values()].sort((one, other) => other.first_entry - one.first_entry).slice(0, limit);
}

async function readFile(env: Env, subrequests: Subrequests, orgId: string, file: ArchivedFile): Promise<LedgerEntry[]> {
  const object = await subrequests.fetch(() => env.STORE.get(ledgerFileKey(orgId, file)));
  if (object === null) throw new Error(`the file of entries ${file.first_entry} to ${file.last_entry} is missing`);
  const lines = (await object.text()).split("\n");
  return lines.filter((line) => line !== "").map((line): LedgerEntry => JSON.parse(line));
}

function fitsTo({ before, kind, run_id, source_ids }: Sought, floor: number): (entry: LedgerEntry) => boolean {
  const sources = source_ids === null ? null : new Set(source_ids);
  return (entry) =>
    entry.number < before &&
    entry.number >= floor &&
    (kind === null || entry.kind === kind) &&
    (run_id === null || entry.run_id === run_id) &&
    (sources === null || sources.has(entry.source_id));
}
