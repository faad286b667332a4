/** Whether a row makes a task: of an environment, or, when none is named, of any. */

import { findOddity, type Json, type JsonObject } from "../../contract/json.ts";
import type { AnyEnvironment } from "../../core/environments/any-environment.ts";
import { buildTask, parseRow, RowError } from "../../core/rollout/task.ts";
import type { Refusal } from "../contract/refusal.ts";

/** What is wrong with row `index`, or null. `where` begins the message: "line 17". Never throws for JSON. */
export function refusedRow(
  environment: AnyEnvironment | null,
  row: Json,
  index: number,
  where: string,
): Refusal | null {
  try {
    checkRow(environment, row, index);
    return null;
  } catch (thrown) {
    if (!(thrown instanceof RowError)) throw thrown;
    return { code: "invalid_row", message: `${where}: ${thrown.message}`, param: thrown.path };
  }
}

function checkRow(environment: AnyEnvironment | null, row: Json, index: number): void {
  if (!isObject(row)) throw new RowError(index, "", "a row must be a JSON object");
  const odd = findOddity(row, "");
  if (odd !== null) throw new RowError(index, `.${odd.path}`, `${odd.path}: ${odd.message}`);
  if (environment === null) {
    // OpenAI's form of a row: what is in it only an environment's arguments can say.
    if (isObject(row["item"] ?? null)) return;
    buildTask({}, row, index);
    return;
  }
  const source = environment.evalDataset ?? environment.dataset;
  buildTask(environment, parseRow(source, row, index), index);
}

function isObject(row: Json): row is JsonObject {
  return row !== null && typeof row === "object" && !Array.isArray(row);
}
