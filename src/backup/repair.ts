/**
 * Brings the rows of runs in D1 up to the state of their objects, after D1 was taken back to an earlier time. First it
 * goes through the index of runs in R2, then through the rows, which get an entry in the index if they have none.
 *
 * Invariants. One call does a bounded part, and each part may be repeated. A row is made again only if its run's object
 * exists and is not being deleted, and only in the project of its entry.
 */
import type { Scope } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { findBegunRun, findStoredRuns, restoreRun, type StoredRun } from "../kernel/db/restored-runs.ts";
import { idsOf, logError } from "../kernel/kit/log.ts";
import { folderOf, RUN_INDEX, runIndexKey, runObject } from "../kernel/kit/names.ts";
import { Subrequests } from "../kernel/kit/subrequests.ts";
import { deleteIndexEntry, readIndexEntry, writeIndexEntry } from "../kernel/service/run-index.ts";
import { listRunPlaces } from "./queries.ts";
import type { RepairedPage } from "./wire.ts";

/** Runs in one call; each takes up to seven calls. */
const RUNS_AT_ONCE = 50;
/** Listings in one call: a project takes about two. */
const MOST_LISTINGS = 50;
/** An entry without a run may be of a run that is about to be created. */
const UNUSED_MS = 24 * 3600_000;
/** Before the number of a row, and that of its D1 database if that is not 0. Keys of the index begin otherwise. */
const ROWS = "rows:";
const ALL_KEYS = "org/";

type Progress = Omit<RepairedPage, "next">;

const NOTHING: Progress = { checked: 0, restored: 0, updated: 0, indexed: 0, deleted: 0, unowned: [], failed: [] };

/** Whether `next` of a call may be this. */
export function isRepairPlace(after: string): boolean {
  return after.startsWith(ALL_KEYS) || /^rows:\d{1,15}(?::[1-9]\d?)?$/.test(after);
}

/**
 * One part of the repair: at most `runs` runs. `after`: `next` of the part before; null for the first. `now`: epoch
 * milliseconds.
 */
export async function repairRuns(
  env: Env,
  after: string | null,
  now: number,
  runs: number = RUNS_AT_ONCE,
): Promise<RepairedPage> {
  const subrequests = new Subrequests();
  if (after?.startsWith(ROWS)) {
    const [, row, number = "0"] = after.split(":");
    return await indexRows(env, { row: Number(row), number: Number(number) }, subrequests);
  }
  const { scope, entries, next } = await nextEntries(env, after ?? ALL_KEYS, runs, subrequests);
  const progress = scope === null ? NOTHING : await repairPage(env, scope, entries, now, subrequests);
  return { ...progress, next: next ?? `${ROWS}0` };
}

interface Entry {
  readonly id: string;
  /** When it was written, in epoch milliseconds. */
  readonly at: number;
}

interface EntriesPage {
  /** Null if the page has no entries. */
  readonly scope: Scope | null;
  readonly entries: readonly Entry[];
  /** Null after the last entry. */
  readonly next: string | null;
}

/**
 * The next entries of one project after the key `after`. What is not in an index is jumped over, since a project may
 * have millions of other files.
 */
async function nextEntries(
  { STORE }: Env,
  after: string,
  limit: number,
  subrequests: Subrequests,
): Promise<EntriesPage> {
  let startAfter = after;
  for (let listings = 0; listings < MOST_LISTINGS; listings += 1) {
    const page = { prefix: ALL_KEYS, startAfter, limit };
    const { objects } = await subrequests.fetch(() => STORE.list(page));
    const [first] = objects;
    if (first === undefined) return { scope: null, entries: [], next: null };
    const [, orgId = "", projectId = ""] = first.key.split("/");
    const scope = { orgId, projectId };
    const index = `${folderOf(scope)}${RUN_INDEX}/`;
    const own = objects.filter(({ key }) => key.startsWith(index));
    const last = own.at(-1);
    if (last !== undefined && first.key.startsWith(index)) {
      const entries = own.map(({ key, uploaded }) => ({ id: key.slice(index.length, -".json".length), at: +uploaded }));
      return { scope, entries, next: last.key };
    }
    // `0` is the character after `/`.
    startAfter = first.key < index ? index : `${folderOf(scope).slice(0, -1)}0`;
  }
  return { scope: null, entries: [], next: startAfter };
}

async function repairPage(
  env: Env,
  scope: Scope,
  entries: readonly Entry[],
  now: number,
  subrequests: Subrequests,
): Promise<Progress> {
  const ids = entries.map(({ id }) => id);
  const { stored, isOpen } = await subrequests.fetch(() => findStoredRuns(databaseOf(env), scope, ids));
  const rows = new Map(stored.map((row) => [row.id, row]));
  const outcomes = await subrequests.six(entries, async (entry): Promise<Outcome | { readonly message: string }> => {
    try {
      return await repairRun({ env, scope, isOpen, now, subrequests }, entry, rows.get(entry.id) ?? null);
    } catch (thrown) {
      logError("a run could not be repaired", idsOf({ scope, run_id: entry.id }), thrown);
      return { message: thrown instanceof Error ? thrown.message : String(thrown) };
    }
  });
  const counted = (wanted: Outcome) => outcomes.filter((outcome) => outcome === wanted).length;
  const places = outcomes.map((outcome, index) => ({
    place: { organization_id: scope.orgId, project_id: scope.projectId, run_id: ids[index] ?? "" },
    outcome,
  }));
  return {
    ...NOTHING,
    ...{ checked: entries.length, restored: counted("restored"), updated: counted("updated") },
    deleted: counted("deleted"),
    unowned: places.flatMap(({ place, outcome }) => (outcome === "unowned" ? [place] : [])),
    failed: places.flatMap(({ place, outcome }) => (typeof outcome === "string" ? [] : [{ ...place, ...outcome }])),
  };
}

type Outcome = "same" | "restored" | "updated" | "deleted" | "unowned";

interface Repair {
  readonly env: Env;
  readonly scope: Scope;
  readonly isOpen: boolean;
  readonly now: number;
  readonly subrequests: Subrequests;
}

async function repairRun(
  { env, scope, isOpen, now, subrequests }: Repair,
  { id, at }: Entry,
  row: StoredRun | null,
): Promise<Outcome> {
  if (row !== null && row.deleted_at !== null) return "same";
  const object = runObject(env, scope, id);
  const live = await subrequests.object(() => object.view());
  if (live === null) {
    // It was never created, is being deleted, or lost its storage.
    if (row !== null || at > now - UNUSED_MS) return "same";
    await subrequests.fetch(() => deleteIndexEntry(env, scope, id));
    return "deleted";
  }
  if (row === null && !isOpen) return "unowned";
  const isWhole = row !== null && row.lacks_endpoint === 0;
  if (!isWhole && (await restore(env, scope, id, live.max_concurrent, subrequests))) {
    await subrequests.object(() => object.rewriteRow(null));
    return "restored";
  }
  if (row === null) return "same";
  const { status, counts, dead_letters, stored_bytes, finished_at } = row;
  const standing = { status, counts, dead_letters, stored_bytes, finished_at };
  const written = await subrequests.object(() => object.rewriteRow(standing));
  return written === "written" ? "updated" : "same";
}

/** False: it has no entry any more, or everything is there. */
async function restore(
  env: Env,
  scope: Scope,
  id: string,
  max_concurrent: number,
  subrequests: Subrequests,
): Promise<boolean> {
  const entry = await subrequests.fetch(() => readIndexEntry(env, scope, id));
  if (entry === null) return false;
  const { run, endpoints } = entry;
  const current = { ...run, spec: { ...run.spec, max_concurrent } };
  return await subrequests.fetch(() => restoreRun(databaseOf(env), scope, current, endpoints));
}

/** Writes the entries that runs with a row lack. */
async function indexRows(
  env: Env,
  { row, number }: { readonly row: number; readonly number: number },
  subrequests: Subrequests,
): Promise<RepairedPage> {
  const database = databaseOf(env);
  const places = await subrequests.fetch(() => listRunPlaces(database.at(number), row, RUNS_AT_ONCE));
  const written = await subrequests.six(places, async ({ scope, id }) => {
    if ((await subrequests.fetch(() => env.STORE.head(runIndexKey(scope, id)))) !== null) return false;
    const entry = await subrequests.fetch(() => findBegunRun(database, scope, id));
    if (entry === null) return false;
    await subrequests.fetch(() => writeIndexEntry(env, scope, entry));
    return true;
  });
  const last = places.length < RUNS_AT_ONCE ? undefined : places.at(-1);
  const indexed = written.filter(Boolean).length;
  return { ...NOTHING, indexed, next: nextPlace(last?.at ?? null, number, database.all.length) };
}

/** `row`: the last row of the page; null if it was the last page of its D1 database. */
function nextPlace(row: number | null, number: number, databases: number): string | null {
  if (row !== null) return number === 0 ? `${ROWS}${row}` : `${ROWS}${row}:${number}`;
  return number + 1 < databases ? `${ROWS}0:${number + 1}` : null;
}
