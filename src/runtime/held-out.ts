/**
 * Tasks a training run never trains on: those that the first `holdout` rows of an eval with its seed hold.
 *
 * Invariants. A task is held out by its content, not by its place, so an equal row elsewhere is held out as well. Which row
 * stands in for one that is held out is a function of the run and the row's number alone: whoever asks gets the same.
 */
import type { AnyEnvironment } from "../core/environments/any-environment.ts";
import type { JsonObject } from "../core/json.ts";
import { seededRandom } from "../core/random.ts";
import { parseRow, RowError, rowAt, taskKey } from "../core/task.ts";
import { readRowTexts } from "./dataset-rows.ts";
import { type Example, exampleOfGroup, type RowsOf, storedRows } from "./datasets.ts";
import { Recent } from "./recent.ts";
import { sha256Hex } from "./secrets.ts";
import type { Subrequests } from "./subrequests.ts";
import type { RunSpec } from "./wire.ts";

export interface KeyedExample extends Example {
  readonly task_key: string;
}

/** The rows of a training run: stored, made, or, before it is accepted, those that came with it. */
export interface TrainingRows {
  /** Null: they never end. */
  readonly length: number | null;
  readonly seed: number;
  /** Rows by their place in the run's order; what is wrong with one stands in its place. */
  readonly at: (places: readonly number[]) => Promise<(Example | RowError)[]>;
  /** The first rows an eval asks. */
  readonly asked: (count: number) => Promise<JsonObject[]>;
}

/** Rows tried in place of one that is held out: where nine in ten are, all of them are once in 800 times. */
const TRIES = 64;
/** From one try to the next in rows without end: a multiple of 1 to 16, so that environments that take turns keep theirs. */
const STRIDE = 720_720;
/** Task keys by run; an isolate serves many. */
const known = new Recent<ReadonlySet<string>>(16);

export async function keysHeldOut(
  rows: TrainingRows,
  holdout: number,
): Promise<ReadonlySet<string>> {
  const keys = new Set<string>();
  if (holdout === 0) return keys;
  for (const row of await rows.asked(holdout)) keys.add(await keyOf(row));
  return keys;
}

/** A row that is held out, as is all that was tried in its place: its rollouts fail and say so. */
export class HeldOut extends Error {
  override readonly name = "HeldOut";

  constructor(index: number) {
    super(
      `row ${index} is held out of training, and so are ${TRIES - 1} others tried in its place`,
    );
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
  const rows = rowsOfRun(env, spec, environment, subrequests);
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

/** Rows without end begin behind those that an eval asks; where they end, another one is drawn. */
function placeOf(
  { length, seed }: TrainingRows,
  holdout: number,
  index: number,
  tried: number,
): number {
  if (length === null) return holdout + index + tried * STRIDE;
  if (tried === 0) return index % length;
  return Math.floor(seededRandom("holdout", seed, index, tried)() * length);
}

function keyOf(row: JsonObject): Promise<string> {
  return taskKey(row, async (text) => sha256Hex(text));
}

/** The rows of an accepted run. */
export function rowsOfRun(
  env: Env,
  spec: RowsOf,
  environment: AnyEnvironment,
  subrequests: Subrequests,
): TrainingRows {
  const { dataset, seed } = spec;
  const at = async (places: readonly number[]) => {
    const stored = await storedRows(env, spec, places, subrequests);
    return places.map((place) => orError(() => exampleOfGroup(spec, environment, place, stored)));
  };
  const asked = async (count: number) => {
    const made = madeForEvals(environment, dataset.key !== null, seed, count);
    if (made !== null) return made;
    const { key, index_key, length } = dataset;
    if (key === null) return [];
    const numbers = Array.from({ length: Math.min(count, length ?? count) }, (_, index) => index);
    const texts = await readRowTexts(env, { key, index_key }, numbers, subrequests);
    const source = environment.evalDataset ?? environment.dataset;
    return numbers.map((row) => parseRow(source, JSON.parse(texts.get(row) ?? "null"), row));
  };
  return { length: dataset.length, seed, at, asked };
}

/** The rows that come with a run which is not accepted yet. */
export function rowsGiven(
  environment: AnyEnvironment,
  given: readonly unknown[],
  seed: number,
): TrainingRows {
  const { dataset } = environment;
  const parsed = (place: number) => parseRow(dataset, given[place], place);
  return {
    length: given.length,
    seed,
    at: async (places) => places.map((place) => ({ example_id: place, row: parsed(place) })),
    asked: async (count) =>
      madeForEvals(environment, true, seed, count) ??
      given.slice(0, count).map((_, place) => parsed(place)),
  };
}

function orError(read: () => Example): Example | RowError {
  try {
    return read();
  } catch (thrown) {
    if (thrown instanceof RowError) return thrown;
    throw thrown;
  }
}

/** Rows an environment makes for evals itself; null where an eval asks those that came with the run. */
function madeForEvals(
  { evalDataset, dataset }: AnyEnvironment,
  given: boolean,
  seed: number,
  count: number,
): JsonObject[] | null {
  const source = evalDataset ?? dataset;
  if (source.kind === "uploaded" || (evalDataset === null && given)) return null;
  const length = Math.min(count, source.length ?? count);
  return Array.from({ length }, (_, index) => rowAt(source, index, seed));
}
