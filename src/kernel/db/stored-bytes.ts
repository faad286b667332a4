/**
 * Bytes that an organisation or project stores: datasets, results of runs as far as the list of runs has them, and the
 * files of slices.
 */
import { eq, sum } from "drizzle-orm";
import type { Scope } from "../../contract/scope.ts";
import type { Database } from "./database.ts";
import { datasets, runs } from "./schema.ts";
import { inOrganization } from "./scoped.ts";
import { type StoredTable, storedTables } from "./slice-tables.ts";

const KERNEL: readonly StoredTable[] = [
  { table: datasets, bytes: datasets.bytes, paidBy: datasets.project_id },
  { table: runs, bytes: runs.stored_bytes, paidBy: runs.project_id },
];

/** Uses indexes, and reads an entry for each run, dataset and row of a slice, so the caller should cache the answer. */
export async function storedBy(database: Database, orgId: string): Promise<number> {
  return await bytesIn(database, orgId, null);
}

/** Reads such an entry for each of the project's. */
export async function storedIn(database: Database, { orgId, projectId }: Scope): Promise<number> {
  return await bytesIn(database, orgId, projectId);
}

/** `projectId` null: those of all projects. */
async function bytesIn(database: Database, orgId: string, projectId: string | null): Promise<number> {
  const owned = inOrganization(database, orgId);
  const sumOf = ({ table, bytes, paidBy }: StoredTable) =>
    owned.columns({ bytes: sum(bytes) }, table, projectId === null ? undefined : eq(paidBy, projectId));
  const sums = await owned.batches([...KERNEL, ...storedTables()].map(sumOf));
  return sums.reduce((total, [row]) => total + Number(row?.bytes ?? 0), 0);
}
