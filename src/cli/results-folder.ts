/** Writes an ended run as files: `results.jsonl`, a row per rollout, and `metadata.json`, in verifiers' layout. */
import { once } from "node:events";
import { createWriteStream, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { finished } from "node:stream/promises";
import type { RunView } from "../core/run.ts";
import type { RollcallClient } from "../sdk/client.ts";
import { usageError } from "./exit.ts";

/** The folder: `<base>/evals/<environment>--<model>/<run id>`. */
export async function writeResults(
  client: RollcallClient,
  run: RunView,
  base: string,
): Promise<string> {
  const model = run.model.replaceAll("/", "--");
  const folder = resolve(base, "evals", `${run.environment.id}--${model}`, run.id);
  makeFolder(folder);
  const file = createWriteStream(join(folder, "results.jsonl"));
  for await (const row of client.results(run.id)) {
    if (!file.write(`${JSON.stringify(row)}\n`)) await once(file, "drain");
  }
  await finished(file.end());
  writeFileSync(join(folder, "metadata.json"), `${JSON.stringify(metadataOf(run), null, 2)}\n`);
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

function metadataOf(run: RunView): Record<string, unknown> {
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
    ...(run.name !== null && { name: run.name }),
    run_id: run.id,
    environment_version: run.environment.version,
    environment_digest: run.environment.digest,
    counts: run.counts,
    metadata: run.metadata,
  };
}
