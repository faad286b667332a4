/** Writes an ended run as files: `results.jsonl`, a row per rollout, and `metadata.json`, in verifiers' layout. */
import { once } from "node:events";
import { createWriteStream, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { finished } from "node:stream/promises";
import type { ResultRow, RunView } from "../core/run.ts";
import type { RollcallClient } from "../sdk/client.ts";
import { usageError } from "./exit.ts";

/** Rollouts read at once for the fields of their states, which results rows have not. */
const READ_AT_ONCE = 8;

/** The folder: `<base>/evals/<environment>--<model>/<run id>`. */
export async function writeResults(
  client: RollcallClient,
  run: RunView,
  base: string,
  stateColumns: readonly string[] = [],
): Promise<string> {
  const model = run.model.replaceAll("/", "--");
  const folder = resolve(base, "evals", `${run.environment.id}--${model}`, run.id);
  makeFolder(folder);
  const file = createWriteStream(join(folder, "results.jsonl"));
  const rows = client.results(run.id);
  const wide = stateColumns.length === 0 ? rows : withState(rows, stateColumns, client);
  for await (const row of wide) {
    if (!file.write(`${JSON.stringify(row)}\n`)) await once(file, "drain");
  }
  await finished(file.end());
  writeFileSync(
    join(folder, "metadata.json"),
    `${JSON.stringify(metadataOf(run, stateColumns), null, 2)}\n`,
  );
  return folder;
}

/** Makes the folder results go under, before anything is spent on them. Throws a usage error when it cannot. */
export function prepareFolder(base: string): void {
  try {
    makeFolder(resolve(base));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw usageError(`--output-dir: ${why}`, "output-dir");
  }
}

/** One folder at a time: Node's own recursive form never comes back from some paths that cannot be made. */
function makeFolder(folder: string): void {
  if (existsSync(folder) && statSync(folder).isDirectory()) return;
  if (dirname(folder) !== folder) makeFolder(dirname(folder));
  mkdirSync(folder);
}

/** The rows in their order, each with these fields of its rollout's state; a field that is not there is null. */
async function* withState(
  rows: AsyncIterable<ResultRow>,
  names: readonly string[],
  client: RollcallClient,
): AsyncGenerator<Record<string, unknown>> {
  const reading: Promise<Record<string, unknown>>[] = [];
  const read = async (row: ResultRow) => {
    const { state } = await client.getRollout(row.rollout_id);
    return { ...row, ...Object.fromEntries(names.map((name) => [name, state[name] ?? null])) };
  };
  for await (const row of rows) {
    reading.push(read(row));
    if (reading.length < READ_AT_ONCE) continue;
    yield* await Promise.all(reading.splice(0));
  }
  yield* await Promise.all(reading);
}

function metadataOf(run: RunView, stateColumns: readonly string[]): Record<string, unknown> {
  const { report } = run;
  const metrics = Object.entries(report.metrics).map(([name, { mean }]) => [name, mean]);
  return {
    env_id: run.environment.id,
    env_args: run.environment_args,
    model: run.model,
    base_url: run.endpoint.base_url,
    num_examples: run.num_examples,
    rollouts_per_example: run.rollouts_per_example,
    shuffle_seed: run.seed,
    sampling_args: run.sampling,
    time: (run.finished_at ?? run.created_at) - run.created_at,
    avg_reward: report.reward.mean,
    avg_metrics: Object.fromEntries(metrics),
    avg_error: report.reward.n_error / Math.max(1, run.counts.planned),
    pass_at_k: report.pass_at_k,
    pass_all_k: report.pass_hat_k,
    usage: report.usage,
    state_columns: stateColumns,
    ...(run.name !== null && { name: run.name }),
    run_id: run.id,
    environment_version: run.environment.version,
    environment_digest: run.environment.digest,
    counts: run.counts,
    metadata: run.metadata,
  };
}
