/** Resolves the uploaded dataset that a run names: looks it up and checks its rows against the run's environment. */
import { canonicalJson, findOddity, type Json, type JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { findLost, within } from "../../contract/lost-json.ts";
import type { Scope } from "../../contract/scope.ts";
import type { RunDataset } from "../../contract/uploaded-dataset.ts";
import type { EnvironmentCode } from "../../core/protocol/environment-code.ts";
import { buildTask, RowError } from "../../core/rollout/task.ts";
import type { DatasetTableRow } from "../db/schema.ts";
import { makeTask } from "../environment/make-task.ts";
import { PROCESS_SCHEDULER, stepsOfJson } from "../kit/fair-scheduler.ts";
import { uploadKeys } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type { Refusal, Result } from "../messages/refusal.ts";
import type { EnvironmentPin } from "../messages/wire.ts";
import { openDataset, refusalOfRows } from "./read.ts";
import { type RowsFile, rowsFrom } from "./rows.ts";

export interface ResolvedDataset {
  /** Null for rows that came with another run. */
  readonly id: string | null;
  readonly dataset: RunDataset & { readonly length: number };
}

interface Against {
  readonly pin: EnvironmentPin;
  readonly args: JsonObject;
  readonly environment: EnvironmentCode;
}

/**
 * How many rows, and how many characters of them, are checked if they were not checked against this environment before.
 */
const ROWS_TRIED = LIMITS.datasetBlockRows;
const CHARACTERS_TRIED = LIMITS.datasetBlockBytes;
const GOOD: Result<null> = { ok: true, value: null };

/** Refuses with `dataset`, or the row, as the field at fault. A row that is not checked may still fail its rollouts. */
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
    : await tryFirstRows(env, scope, keys, against).catch((thrown) => refusalOfRows(thrown, idOrName, "dataset"));
  if (!tried.ok) return tried;
  return { ok: true, value: { id, dataset: { kind: "uploaded", ...keys, length: rows } } };
}

function wasHeldTo({ pin, args }: Against, { environment }: DatasetTableRow): boolean {
  if (environment === null || environment.digest !== pin.digest) return false;
  return canonicalJson(environment.args) === canonicalJson(args);
}

async function tryFirstRows(
  env: Env,
  { orgId }: Scope,
  file: RowsFile,
  { environment }: Against,
): Promise<Result<null>> {
  let characters = 0;
  for await (const { row, text } of rowsFrom(env, file, 0, new Subrequests())) {
    await PROCESS_SCHEDULER.spend(orgId, stepsOfJson(text));
    const value: Json = JSON.parse(text);
    const refusal = await refusedRow(environment, { text, value }, row, `row ${row + 1}`);
    if (refusal !== null) return { ok: false, error: refusal };
    characters += text.length;
    if (row + 1 >= ROWS_TRIED || characters > CHARACTERS_TRIED) break;
  }
  return GOOD;
}

/**
 * What is wrong with row `index`; null if nothing. It must make a task of the environment or, if none is named, a task
 * of any environment. `where` begins the message: "line 17". Never throws for JSON.
 */
export async function refusedRow(
  environment: EnvironmentCode | null,
  { text, value }: { readonly text: string; readonly value: Json },
  index: number,
  where: string,
): Promise<Refusal | null> {
  try {
    const lost = findLost(text, value);
    if (lost !== null) throw new RowError(index, within(lost), lost.message);
    await checkRow(environment, value, index);
    return null;
  } catch (thrown) {
    if (!(thrown instanceof RowError)) throw thrown;
    return { code: "invalid_row", message: `${where}: ${thrown.message}`, param: thrown.path };
  }
}

async function checkRow(environment: EnvironmentCode | null, row: Json, index: number): Promise<void> {
  if (!isObject(row)) throw new RowError(index, "", "a row must be a JSON object");
  const odd = findOddity(row, "");
  if (odd !== null) throw new RowError(index, `.${odd.path}`, `${odd.path}: ${odd.message}`);
  if (environment === null) {
    // OpenAI's form of a row: only an environment's arguments say what it must contain.
    if (isObject(row["item"] ?? null)) return;
    buildTask({}, row, index);
    return;
  }
  await makeTask(environment, { kind: "brought", training: false, index, row });
}

function isObject(row: Json): row is JsonObject {
  return row !== null && typeof row === "object" && !Array.isArray(row);
}
