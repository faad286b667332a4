/**
 * Reads archived journal entries from their files in the object store, the newest first, one page of files at a time.
 */
import { LIMITS } from "../../contract/limits.ts";
import type { LedgerEntry } from "../../contract/money.ts";
import { runOfBatch } from "../../core/training/batch.ts";
import { ledgerFileKey } from "../../kernel/kit/names.ts";
import type { Rows } from "../../kernel/kit/rows.ts";
import { readId } from "../../kernel/kit/secrets.ts";
import { Subrequests } from "../../kernel/kit/subrequests.ts";
import type { EntriesPage, EntriesQuery } from "../rpc.ts";
import type { ArchivedFile } from "./archive.ts";
import type { Ledger } from "./ledger.ts";

/** The files that one call reads, with up to 1,000 entries each. */
const FILES_A_CALL = 300;

/** The filter for entries. */
export interface Sought {
  /** Only entries with lower numbers. */
  readonly before: number;
  readonly kind: EntriesQuery["kind"];
  readonly run_id: string | null;
  readonly source_ids: readonly string[] | null;
}

// A type and not an interface: SQLite rows must be records with string keys.
type Span = { first: number; last: number };

/** Where matching entries may be. */
interface Places {
  /** Ranges of entry numbers; null: anywhere. */
  readonly spans: readonly Span[] | null;
  /** Below this number nothing was looked up; null: everything was looked up. */
  readonly floor: number | null;
}

/**
 * Reads until it has at least `most` entries, or has read `FILES_A_CALL` files. It returns all matching entries from
 * the number `next` on; `next` null: there are no more.
 */
export async function archivedEntries(env: Env, ledger: Ledger, sought: Sought, most: number): Promise<EntriesPage> {
  const { spans, floor } = placesOf(env, ledger, sought);
  const files = filesOf(ledger, spans, sought.before, floor ?? 1);
  const isSought = fitsTo(sought, floor ?? 1);
  const subrequests = new Subrequests();
  const entries: LedgerEntry[] = [];
  let next: number | null = sought.before;
  for (let at = 0; at < FILES_A_CALL && entries.length < most; at += LIMITS.parallelFetches) {
    const batch = files.slice(at, Math.min(at + LIMITS.parallelFetches, FILES_A_CALL));
    // Entries that do not match are dropped after each file: the files may hold hundreds of thousands.
    const read = await subrequests.six(batch, async (file) => {
      const all = await readFile(env, subrequests, ledger.owner(), file);
      return all.filter(isSought).reverse();
    });
    entries.push(...read.flat());
    next = batch.at(-1)?.first_entry ?? null;
    if (at + batch.length >= files.length) return { entries, next: floor };
  }
  return { entries, next };
}

/**
 * A run's entries lie between the first and the last entry of its streams; an entry that is posted once has its number
 * in `sources`. The id of a rollout or a batch contains its run.
 */
function placesOf(env: Env, { rows }: Ledger, { before, kind, run_id, source_ids }: Sought): Places {
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

/** The newest first. Returns one file more than a call reads, if there are more. */
function filesOf({ archive }: Ledger, spans: readonly Span[] | null, before: number, floor: number): ArchivedFile[] {
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
