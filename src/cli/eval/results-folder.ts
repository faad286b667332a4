/**
 * Writes an ended run as files in verifiers' layout: `results.jsonl`, a row per rollout, and `metadata.json`. For each
 * slot of the run only the attempt that counts is written; the platform's own results have the earlier ones too.
 */
import { once } from "node:events";
import { createWriteStream, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { finished } from "node:stream/promises";
import type { ResultRow, RunView } from "../../contract/run.ts";
import { VerifiersMetadata } from "../../core/verifiers/metadata.ts";
import { verifiersRow } from "../../core/verifiers/row.ts";
import { rollcallVersion } from "../../local/package-root.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { usageError } from "../exit.ts";

/** How many rollouts are read at once for the fields of their states, which the results do not have. */
const READ_AT_ONCE = 8;

/** The folder: `<base>/evals/<environment>--<model>/<run id>`. */
export async function writeResults(
  client: RollcallClient,
  run: RunView,
  base: string,
  stateColumns: readonly string[] = [],
): Promise<string> {
  const name = `${run.environment.id}--${run.model}`.replaceAll("/", "--");
  const folder = resolve(base, "evals", name, run.id);
  makeFolder(folder);
  const file = createWriteStream(join(folder, "results.jsonl"));
  const metadata = new VerifiersMetadata();
  const rows = counted(client.runs.results(run.id), metadata);
  for await (const row of withState(rows, stateColumns, client)) {
    if (!file.write(`${JSON.stringify(row)}\n`)) await once(file, "drain");
  }
  await finished(file.end());
  writeFileSync(
    join(folder, "metadata.json"),
    `${JSON.stringify(metadata.of(run, stateColumns, release()), null, 2)}\n`,
  );
  return folder;
}

/** Makes the parent folder of the results, before anything is spent. Throws a usage error if it cannot. */
export function prepareFolder(base: string): void {
  try {
    makeFolder(resolve(base));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw usageError(`--output-dir: ${why}`, "output-dir");
  }
}

/** One folder at a time: Node's recursive mkdir never returns for some paths that cannot be made. */
function makeFolder(folder: string): void {
  if (existsSync(folder) && statSync(folder).isDirectory()) return;
  if (dirname(folder) !== folder) makeFolder(dirname(folder));
  mkdirSync(folder);
}

/** Passes on only the rows that count. */
async function* counted(rows: AsyncIterable<ResultRow>, metadata: VerifiersMetadata): AsyncGenerator<ResultRow> {
  for await (const row of rows) {
    if (row.superseded_by !== null) continue;
    metadata.add(row);
    yield row;
  }
}

/** The rows of the file, each with these fields of its rollout's state; null for a missing field. */
async function* withState(
  rows: AsyncIterable<ResultRow>,
  names: readonly string[],
  client: RollcallClient,
): AsyncGenerator<Record<string, unknown>> {
  const reading: Promise<Record<string, unknown>>[] = [];
  const read = async (row: ResultRow) => {
    if (names.length === 0) return verifiersRow(row);
    const { state } = await client.rollouts.get(row.rollout_id);
    return verifiersRow(row, Object.fromEntries(names.map((name) => [name, state[name] ?? null])));
  };
  for await (const row of rows) {
    reading.push(read(row));
    if (reading.length < READ_AT_ONCE) continue;
    yield* await Promise.all(reading.splice(0));
  }
  yield* await Promise.all(reading);
}

function release(): string {
  return `rollcall ${rollcallVersion()}`;
}
