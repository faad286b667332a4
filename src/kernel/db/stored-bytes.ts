/** Bytes that an organisation or project stores: datasets, and results of runs, as far as the list of runs has them. */
import { sum } from "drizzle-orm";
import type { Scope } from "../../contract/scope.ts";
import { datasets, runs } from "./schema.ts";
import { type InOrganization, type InProject, inOrganization, inProject } from "./scoped.ts";

/** Uses two indexes, and reads an entry for each run and dataset, so the caller should cache the answer. */
export async function storedBy(database: D1Database, orgId: string): Promise<number> {
  return await bytesIn(inOrganization(database, orgId));
}

/** Reads an index entry for each run and dataset. */
export async function storedIn(database: D1Database, scope: Scope): Promise<number> {
  return await bytesIn(inProject(database, scope));
}

async function bytesIn(owned: InOrganization | InProject): Promise<number> {
  const [[files], [left]] = await owned.batch([
    owned.columns({ bytes: sum(datasets.bytes) }, datasets),
    owned.columns({ bytes: sum(runs.stored_bytes) }, runs),
  ]);
  return Number(files?.bytes ?? 0) + Number(left?.bytes ?? 0);
}
