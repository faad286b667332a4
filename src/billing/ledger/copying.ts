/**
 * Copies from the ledger to the stores: hours of usage to the database, old entries to the object store. Each alarm
 * copies one slice. An error of a store is thrown; nothing is marked then, and the same data is written again.
 */

import { databaseOf } from "../../kernel/db/database.ts";
import { ledgerFileKey } from "../../kernel/kit/names.ts";
import type { Subrequests } from "../../kernel/kit/subrequests.ts";
import { writeUsageHours } from "../queries/ledger.ts";
import { type ArchiveBounds, textOf } from "./archive.ts";
import type { Ledger } from "./ledger.ts";

/** The most files in one alarm. */
const FILES_A_SLICE = 10;
const USAGE_BATCHES_A_SLICE = 10;
const USAGE_ROWS_A_BATCH = 50;
/** How long an hour of usage waits, so that several are copied together. */
const COPY_WAIT_MS = 60_000;

export async function archiveEntries(
  env: Env,
  ledger: Ledger,
  bounds: ArchiveBounds,
  subrequests: Subrequests,
): Promise<void> {
  for (let at = 0; at < FILES_A_SLICE; at += 1) {
    const next = ledger.archive.next(bounds);
    if (next === null) return;
    const key = ledgerFileKey(ledger.owner(), next.file);
    await subrequests.fetch(() => env.STORE.put(key, textOf(next.entries)));
    ledger.write(() => ledger.archive.noteStored(next));
  }
}

export async function copyUsage(env: Env, ledger: Ledger, subrequests: Subrequests, now: number): Promise<void> {
  for (let at = 0; at < USAGE_BATCHES_A_SLICE; at += 1) {
    const due = usageDueAt(ledger);
    if (due === null || due > now) return;
    const waiting = ledger.usage.toCopy(USAGE_ROWS_A_BATCH);
    const rows = waiting.map(({ row }) => row);
    await subrequests.fetch(() => writeUsageHours(databaseOf(env), ledger.owner(), rows));
    ledger.write(() => ledger.usage.noteCopied(waiting));
    if (waiting.length < USAGE_ROWS_A_BATCH) return;
  }
}

/** Epoch milliseconds; null if every hour of usage is copied. */
export function usageDueAt({ usage }: Ledger): number | null {
  const since = usage.waitsSince();
  return since === null ? null : since + COPY_WAIT_MS;
}
