/**
 * Tasks that a training run never trains on: those of the first `holdout` rows of an eval requested with the run's
 * settings.
 *
 * Invariants. The rows are found with the functions that an eval uses (`evalOf`, `taskOfGroup`), so the order is the
 * same. A task is held out by its content, not by its place, so an equal row elsewhere is held out as well. The row
 * that replaces a held-out one depends only on the run and the row's number, so it is always the same.
 */

import type { JsonObject } from "../../contract/json.ts";
import { seededRandom } from "../../contract/random.ts";
import type { EnvironmentCode, MadeTask } from "../../core/protocol/environment-code.ts";
import { RowError, taskKey } from "../../core/rollout/task.ts";
import { memberOfRow, rowOfMember, type SharedMember, sharedMembers } from "../../core/training/members.ts";
import { evalOf, firstPlaces, type RowsOf, type RowTexts, storedRows, taskOfGroup } from "../dataset/datasets.ts";
import { LruCache } from "../kit/caches.ts";
import { PROCESS_SCHEDULER, stepsOfJson } from "../kit/fair-scheduler.ts";
import { sha256Hex } from "../kit/secrets.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { RunSpec } from "../messages/wire.ts";

export interface KeyedTask extends MadeTask {
  readonly task_key: string;
}

/** Rows in the order in which a run plays them. */
interface RowsInOrder {
  /** The rows at these places; for a bad row, its error. */
  readonly at: (places: readonly number[]) => Promise<(MadeTask | RowError)[]>;
  /** The first `count` places, or as many as there are; rows that are stored together are next to each other. */
  readonly first: (count: number) => number[];
}

/** The rows of a training run: stored, generated, or (before it is accepted) sent with the request. */
export interface TrainingRows extends RowsInOrder {
  /** Null: they never end. */
  readonly length: number | null;
  readonly seed: number;
  /** The members whose groups are opened by ratio: a row is replaced by one of the same member. */
  readonly members: readonly SharedMember[] | null;
  /** True if the held-out rows are the first ones of the dataset. */
  readonly in_order: boolean;
  /** What an eval plays; and the same rows as training reads them, if it reads them differently. */
  readonly asked: readonly RowsInOrder[];
  /** True if an eval plays the rows of training, at the same places. */
  readonly shared: boolean;
}

/** How many rows are tried in all, the held-out one included. */
const TRIES = 64;
/** How many rows are in memory at once while their keys are computed. */
const SLICE = 25;
/** Distance between tries in endless rows: a multiple of 1 to 16, so that environments in rotation keep their turn. */
const STRIDE = 720_720;
/** Held-out task keys by run: one isolate serves many runs, and run ids are unique in the deployment. */
const known = new LruCache<ReadonlySet<string>>(16);

export async function keysHeldOut(rows: TrainingRows, holdout: number): Promise<ReadonlySet<string>> {
  const keys = new Set<string>();
  for (const asked of rows.asked) {
    const places = asked.first(holdout);
    for (let from = 0; from < places.length; from += SLICE) {
      for (const example of await asked.at(places.slice(from, from + SLICE))) {
        // A row that makes no task is not trained on either.
        if (!(example instanceof RowError)) keys.add(await keyOf(example.row));
      }
    }
  }
  return keys;
}

/** A row is held out, and so are all rows tried in its place: its rollouts fail with this error. */
export class HeldOut extends Error {
  override readonly name = "HeldOut";

  constructor(index: number) {
    super(`row ${index} is held out of training, and so are the ${TRIES - 1} rows tried instead`);
  }
}

/** The tasks of these examples of a run. Held-out keys are computed once per run in this isolate. */
export async function trainingTasks(
  env: Env,
  spec: RunSpec,
  environment: EnvironmentCode,
  examples: readonly number[],
  subrequests: Subrequests,
): Promise<ReadonlyMap<number, KeyedTask | RowError | HeldOut>> {
  const rows = rowsOfRun(env, spec.scope.orgId, spec, environment, subrequests);
  const holdout = spec.training?.holdout ?? 0;
  const heldOut = known.get(spec.run_id) ?? (await keysHeldOut(rows, holdout));
  known.set(spec.run_id, heldOut);
  return await tasksToTrain(rows, heldOut, holdout, examples);
}

/** The task of each of these rows, or why there is none. */
export async function tasksToTrain(
  rows: TrainingRows,
  heldOut: ReadonlySet<string>,
  holdout: number,
  wanted: readonly number[],
): Promise<Map<number, KeyedTask | RowError | HeldOut>> {
  const found = new Map<number, KeyedTask | RowError | HeldOut>();
  let open = [...new Set(wanted)];
  for (let tried = 0; open.length > 0 && tried < TRIES; tried += 1) {
    const examples = await rows.at(open.map((index) => placeOf(rows, holdout, index, tried)));
    const keyed = await Promise.all(examples.map(withKey));
    for (const [at, index] of open.entries()) {
      const example = keyed[at];
      if (example === undefined) continue;
      if (example instanceof Error || !heldOut.has(example.task_key)) found.set(index, example);
    }
    open = open.filter((index) => !found.has(index));
  }
  for (const index of open) found.set(index, new HeldOut(index));
  return found;
}

async function withKey(example: MadeTask | RowError): Promise<KeyedTask | RowError> {
  if (example instanceof Error) return example;
  return { ...example, task_key: await keyOf(example.row) };
}

/** Endless rows begin after those of an eval. Of finite rows, a replacement is drawn after the held-out ones. */
function placeOf(rows: TrainingRows, holdout: number, index: number, tried: number): number {
  const { length, seed, shared } = rows;
  const found = rows.members === null ? null : memberOfRow(rows.members, index);
  if (found !== null) return placeInMember(rows, found, holdout, tried);
  if (length === null) return holdout + index + tried * STRIDE;
  if (tried === 0) return index % length;
  const first = shared && holdout < length ? holdout : 0;
  return first + Math.floor(seededRandom("holdout", seed, index, tried)() * (length - first));
}

/** The same among the rows of one member. */
function placeInMember(
  { seed, in_order }: TrainingRows,
  { member, index }: NonNullable<ReturnType<typeof memberOfRow>>,
  holdout: number,
  tried: number,
): number {
  const { rows } = member.share;
  // In rotation, the first `holdout` rows of the group have at most that many of the member.
  if (rows.length === null) return rowOfMember(rows, Math.ceil(holdout / rows.step) + index + tried * STRIDE);
  if (tried === 0) return rowOfMember(rows, index);
  const first = in_order ? Math.min(Math.max(0, holdout - rows.first), rows.length - 1) : 0;
  const random = seededRandom("holdout", seed, rowOfMember(rows, index), tried);
  return rowOfMember(rows, first + Math.floor(random() * (rows.length - first)));
}

function keyOf(row: JsonObject): Promise<string> {
  return taskKey(row, async (text) => sha256Hex(text));
}

/** The rows of an accepted run. */
export function rowsOfRun(
  env: Env,
  org: string,
  spec: RowsOf,
  environment: EnvironmentCode,
  subrequests: Subrequests,
): TrainingRows {
  return rowsRead(org, spec, environment, (of, places) => storedRows(env, of, places, subrequests));
}

/** The rows sent with the request of a run that is not accepted yet. */
export function rowsGiven(
  org: string,
  spec: RowsOf,
  environment: EnvironmentCode,
  given: readonly unknown[],
): TrainingRows {
  const texts = new Map(given.map((row, number) => [number, JSON.stringify(row)]));
  return rowsRead(org, spec, environment, () => Promise.resolve(texts));
}

/** `read`: returns the stored rows at these places of an order. */
function rowsRead(
  org: string,
  spec: RowsOf,
  environment: EnvironmentCode,
  read: (spec: RowsOf, places: readonly number[]) => Promise<RowTexts>,
): TrainingRows {
  const ordered = (of: RowsOf): RowsInOrder => ({
    at: async (places) => {
      const stored = await read(of, places);
      const examples: (MadeTask | RowError)[] = [];
      for (const place of places) {
        const example = await orError(taskOfGroup(of, environment, place, stored));
        examples.push(example);
        await PROCESS_SCHEDULER.spend(org, stepsOfJson(example instanceof Error ? "" : JSON.stringify(example.row)));
      }
      return examples;
    },
    first: (count) => firstPlaces(of, count).map(({ place }) => place),
  });
  const [own, evals] = [ordered(spec), ordered(evalOf(spec, environment))];
  const readAlike = environment.description.evalDataset === null;
  const shared = readAlike || spec.dataset.kind === "uploaded";
  const asked = shared && !readAlike ? [evals, own] : [evals];
  const members = sharedMembers(spec.training);
  const { length } = spec.dataset;
  const in_order = shared && length !== null && !spec.shuffle;
  return { ...own, length, seed: spec.seed, members, in_order, asked, shared };
}

async function orError(made: Promise<MadeTask>): Promise<MadeTask | RowError> {
  try {
    return await made;
  } catch (thrown) {
    if (thrown instanceof RowError) return thrown;
    throw thrown;
  }
}
