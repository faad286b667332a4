/** Reads uploaded datasets for the API: one dataset, and its rows one page at a time. */
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import type { DatasetView } from "../../contract/uploaded-dataset.ts";
import { databaseOf } from "../db/database.ts";
import { datasetViewOf, findDataset } from "../db/datasets.ts";
import type { DatasetTableRow } from "../db/schema.ts";
import { isolateMemory } from "../kit/isolate-memory.ts";
import { uploadKeys } from "../kit/names.ts";
import { readId } from "../kit/secrets.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import { type RowsFile, RowsMissing, rowsFrom } from "./rows.ts";

export async function readDataset(env: Env, scope: Scope, idOrName: string): Promise<Result<DatasetView>> {
  const found = await openDataset(env, scope, idOrName, "id");
  return found.ok ? { ok: true, value: datasetViewOf(found.value) } : found;
}

/**
 * Lines of `DatasetRow` after row `after`: at most `limit` lines and about 8 MiB (1 MiB in a deployment). `next`: the row
 * after which the next page continues; null on the last page.
 */
export async function readDatasetRows(
  env: Env,
  scope: Scope,
  idOrName: string,
  page: { readonly after: number | null; readonly limit: number },
): Promise<Result<{ lines: string[]; next: number | null }>> {
  const found = await openDataset(env, scope, idOrName, "id");
  if (!found.ok) return found;
  const { id, rows } = found.value;
  const first = page.after === null ? 0 : page.after + 1;
  try {
    const lines = first < rows ? await linesFrom(env, uploadKeys(scope, id), first, page.limit) : [];
    const end = first + lines.length;
    return { ok: true, value: { lines, next: end < rows ? end - 1 : null } };
  } catch (thrown) {
    return refusalOfRows(thrown, idOrName, "id");
  }
}

async function linesFrom(env: Env, file: RowsFile, first: number, limit: number): Promise<string[]> {
  const lines: string[] = [];
  const most = Math.min(LIMITS.inlinePageBytes, isolateMemory(env).pageBytes);
  let characters = 0;
  for await (const { row, text } of rowsFrom(env, file, first, new Subrequests())) {
    characters += text.length;
    if (lines.length > 0 && characters > most) break;
    lines.push(`{"index":${row},"row":${text}}\n`);
    if (lines.length >= limit) break;
  }
  return lines;
}

/** A caller that finds the rows missing had read the dataset just before it was deleted. */
export function refusalOfRows(thrown: unknown, idOrName: string, param: string): Result<never> {
  if (!(thrown instanceof RowsMissing)) throw thrown;
  return refuse("not_found", `the rows of dataset ${idOrName} are missing`, param);
}

/** A dataset by id or name. Refuses with `param` as the field at fault. */
export async function openDataset(
  env: Env,
  scope: Scope,
  idOrName: string,
  param: string,
): Promise<Result<DatasetTableRow>> {
  const missing = refuse("not_found", `no dataset ${idOrName}`, param);
  const isId = readId(env, idOrName)?.kind === "dataset";
  // Names cannot begin with `ds_`. A text that does and is not a valid id is a guess.
  if (!isId && idOrName.startsWith("ds_")) return missing;
  const row = await findDataset(databaseOf(env), scope, isId ? { id: idOrName } : { name: idOrName });
  return row === null ? missing : { ok: true, value: row };
}
