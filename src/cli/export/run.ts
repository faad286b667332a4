/**
 * Exports a run as files. `run.json` comes first, and the other files match it: if the run has changed by the next
 * attempt, all of them are written again. An ended run does not change, unless its rollouts are retried.
 */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { ResultRow, RunView } from "../../contract/run.ts";
import type { RunEvent } from "../../contract/run-events.ts";
import type { StepMetrics } from "../../contract/training-view.ts";
import type { RollcallClient, RolloutView } from "../../sdk/client.ts";
import { countText } from "../terminal/format.ts";
import type { Exporting } from "./exporting.ts";

/** How many rollouts are requested at once. */
const AT_ONCE = 8;
const SHOWN_EVERY = 100;
const PAGE = 100;

export async function exportRun(client: RollcallClient, id: string, path: string, shared: Exporting): Promise<void> {
  const { folder, signal, show, unfinished } = shared;
  show(`run ${id}`);
  const run = await client.runs.get(id, { signal });
  if (!folder.holds(`${path}/run.json`, run)) {
    folder.remove(`${path}/`);
    folder.writeJson(`${path}/run.json`, run);
  }
  const results = `${path}/results.jsonl`;
  if (!folder.keeps(results)) await folder.writeLines(results, client.runs.results(id, {}, { signal }));
  const reviews = `${path}/reviews.jsonl`;
  if (!folder.keeps(reviews)) {
    await folder.writeLines(reviews, client.reviews.listOfRun(id, { limit: PAGE, order: "asc" }, { signal }));
  }
  if (run.kind === "training" && !folder.keeps(`${path}/metrics.json`)) {
    folder.writeJson(`${path}/metrics.json`, await metricsOf(client, id, signal));
  }
  if (run.finished_at === null) unfinished.push(id);
  // The events of a run in progress have no end yet.
  else if (!folder.keeps(`${path}/events.jsonl`)) {
    await folder.writeLines(`${path}/events.jsonl`, eventsOf(client, id, signal));
  }
  await exportRollouts(client, run, path, shared);
}

/** Writes the rollouts in the order of the results, after those that an earlier attempt wrote. */
async function exportRollouts(client: RollcallClient, run: RunView, path: string, shared: Exporting): Promise<void> {
  const { folder, signal, show, counts } = shared;
  const file = `${path}/rollouts.jsonl`;
  const ids = await rolloutIds(folder.at(`${path}/results.jsonl`));
  counts.rollouts += ids.length;
  if (folder.keeps(file)) return;
  const left = await folder.linesLeft(file);
  const fits = left.last === null || idOf(left.last) === ids[left.count - 1];
  if (!fits) folder.remove(`${file}.partial`);
  const from = fits ? left.count : 0;
  let written = from;
  const get = (id: string): Promise<RolloutView> => {
    written += 1;
    if (written % SHOWN_EVERY === 0) {
      show(`run ${run.id}: ${countText(written)} of ${countText(ids.length)} rollouts`);
    }
    return client.rollouts.get(id, { signal });
  };
  await folder.goOnWithLines(file, inOrder(ids.slice(from), get));
}

async function rolloutIds(file: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const row: Pick<ResultRow, "rollout_id"> = JSON.parse(line);
    ids.push(row.rollout_id);
  }
  return ids;
}

function idOf(line: string): string {
  const rollout: Pick<RolloutView, "id"> = JSON.parse(line);
  return rollout.id;
}

/** Requests several at once, and yields them in the order of their ids. */
async function* inOrder<T>(ids: readonly string[], get: (id: string) => Promise<T>): AsyncGenerator<T> {
  const coming: Promise<T>[] = [];
  for (const id of ids) {
    const next = get(id);
    // A rejection is thrown when its turn comes; until then this marks it as handled.
    next.catch(() => undefined);
    coming.push(next);
    const first = coming.length < AT_ONCE ? undefined : coming.shift();
    if (first !== undefined) yield await first;
  }
  for (const next of coming) yield await next;
}

/** A retried run has more than one end. */
async function* eventsOf(client: RollcallClient, id: string, signal: AbortSignal): AsyncGenerator<RunEvent> {
  for (let after: number | undefined, more = true; more; ) {
    more = false;
    for await (const event of client.runs.events(id, { after, signal })) {
      yield event;
      [after, more] = [event.id, true];
    }
  }
}

async function metricsOf(client: RollcallClient, id: string, signal: AbortSignal): Promise<StepMetrics[]> {
  const steps: StepMetrics[] = [];
  for (let after: number | undefined; ; ) {
    const page = await client.runs.metrics(id, { after_step: after, limit: 1000 }, { signal });
    steps.push(...page.data);
    if (!page.has_more || page.last_id === null) return steps;
    after = Number(page.last_id);
  }
}
