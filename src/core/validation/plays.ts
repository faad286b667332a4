/** Plays every policy on every example, and plays it again with a restart after each step. */
import { cloneJson, type Json, type JsonObject } from "../../contract/json.ts";
import type { AnyEnvironment } from "../environments/any-environment.ts";
import { NO_JOURNAL, RolloutSql } from "../environments/rollout-sql.ts";
import { openHarness } from "../rollout/harness.ts";
import { type PlayOptions, playTask, type RolloutReport } from "../rollout/play.ts";
import { newRollout, type RolloutTask } from "../rollout/rollout.ts";
import { buildTask, parseRow, RowError, rowAt } from "../rollout/task.ts";
import { databaseOf } from "../sql/database.ts";
import { type GoldPolicy, goldPolicies, nullPolicy, type Policy, type PolicyName, randomPolicy } from "./policies.ts";

/** A rollout without a limit of its own that has more turns than this counts as endless. */
const MOST_TURNS = 100;

export interface Play {
  readonly policy: PolicyName;
  readonly example: number;
  /** Null if it was aborted. */
  readonly report: RolloutReport | null;
  /** Why it was aborted. */
  readonly fault: string | null;
  /** How the play with restarts differs from this one. */
  readonly restarted: string | null;
  /** How a repeated play without restarts differs. */
  readonly unsteady: string | null;
}

export interface Stage {
  readonly environment: AnyEnvironment;
  /** A second instance of the environment: a play continues with it after a restart. */
  readonly secondInstance: AnyEnvironment;
  readonly goldPolicy: GoldPolicy | null;
  readonly capabilities: NonNullable<PlayOptions["capabilities"]>;
  /** As in `PlayOptions`. */
  readonly openSqlite?: PlayOptions["openSqlite"];
  /** Runs something with a later clock, to find results that depend on the time. */
  readonly later: <T>(run: () => Promise<T>) => Promise<T>;
}

/** One rollout per policy and example; of the gold policies the best one counts. */
export async function playAll(stage: Stage, examples: readonly Example[]): Promise<Play[]> {
  const plays: Play[] = [];
  for (const example of examples) {
    const gold = goldPolicies(stage.goldPolicy, example.task);
    if (gold.length > 0) plays.push(await playBest(stage, example, gold));
    plays.push(await play(stage, example, "null", nullPolicy));
    plays.push(await play(stage, example, "random", randomPolicy(example.index)));
  }
  return plays;
}

async function playBest(stage: Stage, example: Example, forms: readonly Policy[]): Promise<Play> {
  const plays: Play[] = [];
  for (const form of forms) plays.push(await play(stage, example, "gold", form));
  return plays.reduce((best, next) => (scoreOf(next) > scoreOf(best) ? next : best));
}

function scoreOf({ report }: Play): number {
  return report?.reward ?? Number.NEGATIVE_INFINITY;
}

async function play(stage: Stage, example: Example, policy: PolicyName, make: Policy): Promise<Play> {
  const straight = await attempt(stage, example, make, false);
  const restarted = straight.report === null ? straight : await attempt(stage, example, make, true);
  const changed = differenceOf(straight, restarted);
  const unsteady =
    changed === null ? null : differenceOf(straight, await stage.later(() => attempt(stage, example, make, false)));
  return {
    policy,
    example: example.index,
    ...straight,
    // If a play differs from its own repetition, its difference after restarts means nothing.
    restarted: unsteady === null ? changed : null,
    unsteady,
  };
}

interface Attempt {
  readonly report: RolloutReport | null;
  readonly fault: string | null;
}

async function attempt(
  { environment, secondInstance, capabilities, openSqlite }: Stage,
  example: Example,
  make: Policy,
  restartAfterEachTurn: boolean,
): Promise<Attempt> {
  const limit = Math.max(MOST_TURNS, environment.route(example.task).environment.maxTurns);
  try {
    const model = make();
    const report = await playTask(environment, example.task, {
      model: (request) => {
        if (request.turn < limit) return model(request);
        throw new Error(`no end after ${limit} model calls; set maxTurns or add a stop`);
      },
      seed: SEED,
      capabilities,
      ...(openSqlite && { openSqlite }),
      restartAfterEachTurn,
      secondInstance,
    });
    return { report, fault: null };
  } catch (thrown) {
    return { report: null, fault: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}

function differenceOf(first: Attempt, second: Attempt): string | null {
  const found = firstDifference(asJson(first), asJson(second), "");
  return found?.replace(/^\.(report\.)?/, "") ?? null;
}

/** An attempt is JSON, although its type is wider. */
function asJson(attempt: Attempt): Json {
  return cloneJson<unknown>(attempt) as Json;
}

/** The first difference of two JSON values: "state.turns is 3 and then 0". */
const SHOWN_CHARACTERS = 60;

/** Null if they are equal. The values are compared as JSON stores them: undefined members do not count. */
export function firstDifference(first: Json, second: Json, path: string): string | null {
  if (JSON.stringify(first) === JSON.stringify(second)) return null;
  const members = membersOf(first);
  const others = membersOf(second);
  if (members === null || others === null || Array.isArray(first) !== Array.isArray(second)) {
    return `${path} is ${show(first)} and then ${show(second)}`;
  }
  const keys = new Set([...members.keys(), ...others.keys()]);
  for (const key of keys) {
    const at = Array.isArray(first) ? `${path}[${key}]` : `${path}.${key}`;
    const found = firstDifference(members.get(key) ?? null, others.get(key) ?? null, at);
    if (found !== null) return found;
  }
  // The same members in another order: equal for every reader that uses names.
  return null;
}

function membersOf(value: Json): ReadonlyMap<string, Json> | null {
  return value === null || typeof value !== "object" ? null : new Map(Object.entries(value));
}

function show(value: Json): string {
  const text = JSON.stringify(value);
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}…`;
}

/** The rows that a validation plays: the first ones of the dataset, each parsed once, as in a run. */
const SEED = 0;

export interface Example {
  /** Index of the row in the dataset. */
  readonly index: number;
  readonly task: Omit<RolloutTask, "id" | "task_key">;
}

export interface ReadRows {
  readonly examples: readonly Example[];
  /** Invalid rows: for each, the path of the fault and the fault. */
  readonly faults: readonly string[];
}

/** Reads at most `count` rows. `uploaded`: the rows of a dataset whose rows come with the run. */
export function readRows(environment: AnyEnvironment, count: number, uploaded: readonly unknown[]): ReadRows {
  const { kind, length } = environment.dataset;
  const available = kind === "uploaded" ? uploaded.length : (length ?? count);
  const examples: Example[] = [];
  const faults: string[] = [];
  for (let index = 0; index < Math.min(count, available); index += 1) {
    try {
      examples.push(readExample(environment, index, uploaded));
    } catch (thrown) {
      if (!(thrown instanceof RowError)) throw thrown;
      faults.push(`${thrown.path}: ${thrown.message}`);
    }
  }
  return { examples, faults };
}

/** Throws `RowError`. */
function readExample(environment: AnyEnvironment, index: number, uploaded: readonly unknown[]): Example {
  const { dataset } = environment;
  const row = dataset.kind === "uploaded" ? parseRow(dataset, uploaded[index], index) : rowAt(dataset, index, SEED);
  return { index, task: buildTask(environment, row, index) };
}

// Compares a row, and the initial state of its rollout, with those made by a second instance of the environment. This
// finds randomness that is drawn while the module is loaded or the environment is built.

/** The differences by example. A setup that fails is not compared: its rollouts report the failure. */
export async function unsteadyResets(
  stage: Stage,
  examples: readonly Example[],
  uploaded: readonly unknown[],
): Promise<string[]> {
  const made = (environment: AnyEnvironment) => () =>
    Promise.all(examples.map((example) => reset({ ...stage, environment }, example, uploaded)));
  const first = await made(stage.environment)();
  const second = await stage.later(made(stage.secondInstance));
  return examples.flatMap(({ index }, at) => {
    const found = firstDifference(first[at] ?? null, second[at] ?? null, "");
    return found === null ? [] : [`row ${index}: ${found.slice(1)}`];
  });
}

async function reset(stage: Stage, { index }: Example, uploaded: readonly unknown[]): Promise<JsonObject> {
  try {
    const example = readExample(stage.environment, index, uploaded);
    return { row: example.task.task, state: await stateAfterSetup(stage, example) };
  } catch (thrown) {
    // The instances may have different numbers of rows.
    if (!(thrown instanceof RowError || thrown instanceof RangeError)) throw thrown;
    // A row that only one instance refuses differs by its error.
    return { row: thrown.message, state: null };
  }
}

async function stateAfterSetup(
  { environment, capabilities, openSqlite }: Stage,
  { task }: Example,
): Promise<JsonObject | null> {
  const rollout = newRollout({ ...task, id: "rollout", task_key: "task" }, 0);
  const harness = openHarness(environment, rollout, {
    rolloutId: "rollout",
    seed: SEED,
    capabilities: { now: () => 0, ...capabilities },
    sql: openSqlite && new RolloutSql(databaseOf(openSqlite()), NO_JOURNAL),
  });
  const event = await harness.perform({ kind: "setup" }, rollout);
  return event.type === "set_up" ? event.state : null;
}
