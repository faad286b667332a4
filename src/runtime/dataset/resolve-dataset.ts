/** The uploaded dataset a run names: looked up, and its rows held to the environment the run is of. */

import { canonicalJson, type Json, type JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import type { RunDataset } from "../../contract/uploaded-dataset.ts";
import type { AnyEnvironment } from "../../core/environments/any-environment.ts";
import type { DatasetTableRow } from "../../db/schema.ts";
import type { Result } from "../contract/refusal.ts";
import type { EnvironmentPin } from "../contract/wire.ts";
import { uploadKeys } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { refusedRow } from "./check-row.ts";
import { openDataset, refusalOfRows } from "./read-datasets.ts";
import { type RowsFile, rowsFrom } from "./rows.ts";

export interface ResolvedDataset {
  /** Null for rows that came with another run. */
  readonly id: string | null;
  readonly dataset: RunDataset & { readonly length: number };
}

interface Against {
  readonly pin: EnvironmentPin;
  readonly args: JsonObject;
  readonly environment: AnyEnvironment;
}

/** Of rows that nobody held to this environment before, so many are, and no more than so many characters of them. */
const ROWS_TRIED = LIMITS.datasetBlockRows;
const CHARACTERS_TRIED = LIMITS.datasetBlockBytes;
const GOOD: Result<null> = { ok: true, value: null };

/** Refuses with `dataset`, or the row, as the field at fault. A row that is not tried may still fail its rollouts. */
export async function resolveDataset(
  env: Env,
  scope: Scope,
  idOrName: string,
  against: Against,
): Promise<Result<ResolvedDataset>> {
  const found = await openDataset(env, scope, idOrName, "dataset");
  if (!found.ok) return found;
  const { id, rows } = found.value;
  const keys = uploadKeys(scope, id);
  const tried = wasHeldTo(against, found.value)
    ? GOOD
    : await tryFirstRows(env, keys, against).catch((thrown) => refusalOfRows(thrown, idOrName, "dataset"));
  if (!tried.ok) return tried;
  return { ok: true, value: { id, dataset: { kind: "uploaded", ...keys, length: rows } } };
}

function wasHeldTo({ pin, args }: Against, { environment }: DatasetTableRow): boolean {
  if (environment === null || environment.digest !== pin.digest) return false;
  return canonicalJson(environment.args) === canonicalJson(args);
}

async function tryFirstRows(env: Env, file: RowsFile, { environment }: Against): Promise<Result<null>> {
  let characters = 0;
  for await (const { row, text } of rowsFrom(env, file, 0, new Subrequests())) {
    const value: Json = JSON.parse(text);
    const refusal = refusedRow(environment, value, row, `row ${row + 1}`);
    if (refusal !== null) return { ok: false, error: refusal };
    characters += text.length;
    if (row + 1 >= ROWS_TRIED || characters > CHARACTERS_TRIED) break;
  }
  return GOOD;
}
