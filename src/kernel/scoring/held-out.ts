/**
 * Tasks a training run never trains on: those of the first `holdout` rows that an eval plays which is asked as the run was.
 *
 * Invariants. Those rows are found by what an eval itself finds its rows by (`evalOf`, `exampleOfGroup`), so its order and
 * theirs are one. A task is held out by its content, not by its place, so an equal row elsewhere is held out as well. Which
 * row stands in for one that is held out is a function of the run and the row's number alone: whoever asks gets the same.
 */

import type { JsonObject } from "../../contract/json.ts";
import { seededRandom } from "../../contract/random.ts";
import type { AnyEnvironment } from "../../core/environments/any-environment.ts";
import { RowError, taskKey } from "../../core/rollout/task.ts";
import {
  type Example,
  evalOf,
  exampleOfGroup,
  firstPlaces,
  type RowsOf,
  type RowTexts,
  storedRows,
} from "../dataset/datasets.ts";
import { LruCache } from "../kit/caches.ts";
import { PROCESS_TURNS, stepsOfJson } from "../kit/fair-turns.ts";
import { sha256Hex } from "../kit/secrets.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { RunSpec } from "../messages/wire.ts";

export interface KeyedExample extends Example {
  readonly task_key: string;
}

/** Rows in the order in which a run plays them. */
interface RowsInOrder {
  /** By their places; what is wrong with one stands in its place. */
  readonly at: (places: readonly number[]) => Promise<(Example | RowError)[]>;
  /** So many places from the first on, as many as there are, those of rows that lie together side by side. */
  readonly first: (count: number) => number[];
}

/** The rows of a training run: stored, made, or, before it is accepted, those that came with it. */
export interface TrainingRows extends RowsInOrder {
  /** Null: they never end. */
  readonly length: number | null;
  readonly seed: number;
  /** What an eval plays; once more as training reads it, where that is other than as an eval does. */
  readonly asked: readonly RowsInOrder[];
  /** Whether an eval plays the rows of training, at the same places. */
  readonly shared: boolean;
}

/** Rows tried in place of one that is held out. */
const TRIES = 64;
/** Rows whose texts are held at once while their keys are made. */
const SLICE = 25;
/** From one try to the next in rows without end: a multiple of 1 to 16, so that environments that take turns keep theirs. */
const STRIDE = 720_720;
/** Task keys by run; an isolate serves many. An id of a run is one run's in the whole deployment. */
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

/** A row that is held out, as is all that was tried in its place: its rollouts fail and say so. */
export class HeldOut extends Error {
  override readonly name = "HeldOut";

  constructor(index: number) {
    super(`row ${index} is held out of training, and so are the ${TRIES - 1} rows tried instead`);
  }
}

/** The tasks that these examples of a run stand for. What is held out is found once a run in this isolate. */
export async function trainingTasks(
  env: Env,
  spec: RunSpec,
  environment: AnyEnvironment,
  examples: readonly number[],
  subrequests: Subrequests,
): Promise<ReadonlyMap<number, KeyedExample | RowError | HeldOut>> {
  const rows = rowsOfRun(env, spec.scope.orgId, spec, environment, subrequests);
  const holdout = spec.training?.holdout ?? 0;
  const heldOut = known.get(spec.run_id) ?? (await keysHeldOut(rows, holdout));
  known.set(spec.run_id, heldOut);
  return await tasksToTrain(rows, heldOut, holdout, examples);
}

/** The task each of these rows stands for, or why there is none. */
export async function tasksToTrain(
  rows: TrainingRows,
  heldOut: ReadonlySet<string>,
  holdout: number,
  wanted: readonly number[],
): Promise<Map<number, KeyedExample | RowError | HeldOut>> {
  const found = new Map<number, KeyedExample | RowError | HeldOut>();
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

async function withKey(example: Example | RowError): Promise<KeyedExample | RowError> {
  if (example instanceof Error) return example;
  return { ...example, task_key: await keyOf(example.row) };
}

/** Rows without end begin behind those that an eval asks; where they end, another one is drawn from behind those. */
function placeOf({ length, seed, shared }: TrainingRows, holdout: number, index: number, tried: number): number {
  if (length === null) return holdout + index + tried * STRIDE;
  if (tried === 0) return index % length;
  const first = shared && holdout < length ? holdout : 0;
  return first + Math.floor(seededRandom("holdout", seed, index, tried)() * (length - first));
}

function keyOf(row: JsonObject): Promise<string> {
  return taskKey(row, async (text) => sha256Hex(text));
}

/** The rows of an accepted run. */
export function rowsOfRun(
  env: Env,
  org: string,
  spec: RowsOf,
  environment: AnyEnvironment,
  subrequests: Subrequests,
): TrainingRows {
  return rowsRead(org, spec, environment, (of, places) => storedRows(env, of, places, subrequests));
}

/** The rows that come with a run which is not accepted yet. */
export function rowsGiven(
  org: string,
  spec: RowsOf,
  environment: AnyEnvironment,
  given: readonly unknown[],
): TrainingRows {
  const texts = new Map(given.map((row, number) => [number, JSON.stringify(row)]));
  return rowsRead(org, spec, environment, () => Promise.resolve(texts));
}

/** `read`: what is stored of the rows at these places of an order. */
function rowsRead(
  org: string,
  spec: RowsOf,
  environment: AnyEnvironment,
  read: (spec: RowsOf, places: readonly number[]) => Promise<RowTexts>,
): TrainingRows {
  const ordered = (of: RowsOf): RowsInOrder => ({
    at: async (places) => {
      const stored = await read(of, places);
      const examples: (Example | RowError)[] = [];
      for (const place of places) {
        const example = orError(() => exampleOfGroup(of, environment, place, stored));
        examples.push(example);
        await PROCESS_TURNS.spend(org, stepsOfJson(example instanceof Error ? "" : JSON.stringify(example.row)));
      }
      return examples;
    },
    first: (count) => firstPlaces(of, count).map(({ place }) => place),
  });
  const [own, evals] = [ordered(spec), ordered(evalOf(spec, environment))];
  const readAlike = environment.evalDataset === null;
  const shared = readAlike || spec.dataset.kind === "uploaded";
  const asked = shared && !readAlike ? [evals, own] : [evals];
  return { ...own, length: spec.dataset.length, seed: spec.seed, asked, shared };
}

function orError(read: () => Example): Example | RowError {
  try {
    return read();
  } catch (thrown) {
    if (thrown instanceof RowError) return thrown;
    throw thrown;
  }
}
