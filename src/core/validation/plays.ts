/** Plays every policy on every example, and plays it again with a restart after each step. */
import { OverlongPromptError } from "../../contract/errors.ts";
import { cloneJson, type Json, type JsonObject } from "../../contract/json.ts";
import type { ToolDefinition } from "../../contract/messages.ts";
import type { DatasetDescription, EnvironmentCode, MadeTask, TaskSource } from "../protocol/environment-code.ts";
import {
  type JudgeAnswers,
  openHost,
  openPlayer,
  type PlayOptions,
  playerOf,
  playTask,
  type RolloutReport,
  scorePlayed,
} from "../rollout/play.ts";
import { newRollout } from "../rollout/rollout.ts";
import { endedWell, type ScoreRecord } from "../rubrics/score.ts";
import { usualAnswer } from "./judge-questions.ts";
import { JudgeBench } from "./judgements.ts";
import {
  constantPolicy,
  echoPolicy,
  type GoldPolicy,
  goldPolicies,
  nullPolicy,
  type Policy,
  type PolicyName,
  randomPolicy,
} from "./policies.ts";

/** A rollout without a limit of its own that has more turns than this counts as endless. */
const MOST_TURNS = 100;
/** What the policy `constant` replies if the first row has no answer. */
const CONSTANT = "1";

export interface Play {
  readonly policy: PolicyName;
  readonly example: number;
  /** Null if it was aborted. */
  readonly report: RolloutReport | null;
  /** Why it was aborted. */
  readonly fault: string | null;
  /** The tools that the model was offered. */
  readonly tools: readonly ToolDefinition[];
  /** Whether one reply ends a rollout of this row. */
  readonly isSingleTurn: boolean;
  /** How the play with restarts differs from this one. */
  readonly restarted: string | null;
  /** How a repeated play without restarts differs. */
  readonly unsteady: string | null;
  /** The rewards that it can have by other judgements, its own among them; empty if no judge was asked. */
  readonly judgedRewards: readonly number[];
}

export interface Stage extends Pick<PlayOptions, "mostCharacters" | "openSqlite" | "timer"> {
  readonly code: EnvironmentCode;
  /** A second instance of the environment: a play continues with it after a restart. */
  readonly secondInstance: EnvironmentCode;
  /** `unknown`: the environment may export one that cannot be called here. */
  readonly goldPolicy: GoldPolicy | null | "unknown";
  /** After this many turns a play is truncated, and scored as it is. Absent: no such limit. */
  readonly mostTurns?: number;
  /** Runs something with a later clock, to find results that depend on the time. */
  readonly later: <T>(run: () => Promise<T>) => Promise<T>;
}

/** Thrown by a call of the code: nothing more can be played. The message says why. */
export class UnfinishedError extends Error {
  override readonly name = "UnfinishedError";
}

export function benchOf(stage: Stage): JudgeBench {
  const { code } = stage;
  const named = code.description.judges;
  return new JudgeBench(code.description, (members, answer) => scorePlayed(code, members, { named, answer }, stage));
}

/**
 * One rollout per policy and example, as each is ready; of the gold policies the best one counts. If the rubric asks
 * judges, gold plays are judged as well as possible, and all others as badly. If it scores groups, the plays of a row
 * are judged as one.
 */
export async function* playAll(stage: Stage, examples: readonly Example[], bench: JudgeBench): AsyncGenerator<Play> {
  const { judges, scores } = stage.code.description;
  const grouped = scores.some(({ group }) => group);
  for (const example of examples) {
    if (judges.length === 0) yield* playExample(stage, examples, example);
    else {
      const together: Play[] = [];
      for await (const play of playExample(stage, examples, example)) {
        if (grouped) together.push(play);
        else yield* await judge(bench, [play]);
      }
      if (grouped) yield* await judge(bench, together);
    }
  }
}

async function* playExample(stage: Stage, examples: readonly Example[], example: Example): AsyncGenerator<Play> {
  const gold = goldPolicies(stage.goldPolicy === "unknown" ? null : stage.goldPolicy, example.task);
  if (gold.length > 0) yield await playBest(stage, example, gold);
  yield await play(stage, example, "null", nullPolicy);
  yield await play(stage, example, "constant", constantPolicy(examples[0]?.task.answer || CONSTANT));
  yield await play(stage, example, "echo", echoPolicy);
  yield await play(stage, example, "random", randomPolicy(example.index));
}

/** The plays with the scores of their judgements. */
async function judge(bench: JudgeBench, plays: readonly Play[]): Promise<Play[]> {
  const members = plays.flatMap(({ report }, at) => {
    if (report === null || !endedWell(report.trajectory)) return [];
    return { at, trajectory: { ...report.trajectory, rollout_id: `rollout-${at}` } };
  });
  if (members.length === 0) return [...plays];
  const isGold = plays.some(({ policy }) => policy === "gold");
  const judged = await bench.play(
    members.map(({ trajectory }) => trajectory),
    isGold,
  );
  const byPlay = new Map(members.map(({ at }, index) => [at, judged[index] ?? null]));
  return plays.map((play, at) => {
    const found = byPlay.get(at) ?? null;
    if (found === null || play.report === null) return play;
    const record = play.policy === "gold" ? found.best : found.worst;
    return { ...play, report: { ...play.report, ...scoresOf(record) }, judgedRewards: found.rewards };
  });
}

function scoresOf({ reward, scores, scoring_errors }: ScoreRecord) {
  return { reward, metrics: Object.fromEntries(scores.map(({ name, score }) => [name, score])), scoring_errors };
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
  const tools = new Map<string, ToolDefinition>();
  const offer: Offered = (tool) => tools.set(tool.function.name, tool);
  const played = { make, answer: usualAnswer(stage.code.description, policy === "gold" ? "best" : "worst") };
  const straight = await attempt(stage, example, played, false, offer);
  const restarted = straight.report === null ? straight : await attempt(stage, example, played, true);
  const changed = differenceOf(straight, restarted);
  const unsteady =
    changed === null ? null : differenceOf(straight, await stage.later(() => attempt(stage, example, played, false)));
  return {
    policy,
    example: example.index,
    ...straight,
    tools: [...tools.values()],
    isSingleTurn: playerOf(stage.code.description, example.member)?.maxTurns === 1,
    // If a play differs from its own repetition, its difference after restarts means nothing.
    restarted: unsteady === null ? changed : null,
    unsteady,
    judgedRewards: [],
  };
}

type Offered = (tool: ToolDefinition) => void;

interface Attempt {
  readonly report: RolloutReport | null;
  readonly fault: string | null;
}

/** A policy, and what judges answer. */
interface Played {
  readonly make: Policy;
  readonly answer: JudgeAnswers;
}

/** Throws UnfinishedError. */
async function attempt(
  stage: Stage,
  example: Example,
  { make, answer }: Played,
  restartAfterEachTurn: boolean,
  offer?: Offered,
): Promise<Attempt> {
  const { code, mostTurns = Number.POSITIVE_INFINITY } = stage;
  const { description } = code;
  const limit = Math.max(MOST_TURNS, playerOf(description, example.member)?.maxTurns ?? 0);
  try {
    const model = make();
    const report = await playTask(code, example, {
      ...stage,
      model: (request) => {
        if (offer !== undefined) request.tools.forEach(offer);
        if (request.turn >= mostTurns) throw new OverlongPromptError(`a validation plays ${mostTurns} turns`);
        if (request.turn < limit) return model(request);
        throw new Error(`no end after ${limit} model calls; set maxTurns or add a stop`);
      },
      answer,
      seed: SEED,
      restartAfterEachTurn,
    });
    return { report, fault: null };
  } catch (thrown) {
    if (thrown instanceof UnfinishedError) throw thrown;
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

// The rows that a validation plays: the first ones of the dataset, each parsed once, as in a run.

/** Of rows and rollouts. */
export const SEED = 0;

/** `task`: as `MadeTask` has it. */
export interface Example extends Pick<MadeTask, "task" | "member"> {
  /** Index of the row in the dataset. */
  readonly index: number;
}

export interface ReadRows {
  readonly examples: readonly Example[];
  /** Invalid rows: for each, the path of the fault and the fault. */
  readonly faults: readonly string[];
}

/** Reads at most `count` rows. `uploaded`: the rows of a dataset whose rows come with the run. */
export async function readRows(
  { description, task }: EnvironmentCode,
  count: number,
  uploaded: readonly unknown[],
): Promise<ReadRows> {
  const { kind, length, fault } = description.dataset;
  if (fault !== null) return { examples: [], faults: [fault] };
  const available = kind === "uploaded" ? uploaded.length : (length ?? count);
  const examples: Example[] = [];
  const faults: string[] = [];
  for (let index = 0; index < Math.min(count, available); index += 1) {
    const made = await task(sourceOf(kind, index, uploaded));
    if ("fault" in made) faults.push(`rows[${index}]${made.fault.column}: ${made.fault.message}`);
    else examples.push({ index, task: made.task, member: made.member });
  }
  return { examples, faults };
}

function sourceOf(kind: DatasetDescription["kind"], index: number, uploaded: readonly unknown[]): TaskSource {
  const training = true;
  return kind === "uploaded"
    ? { kind: "brought", training, index, row: uploaded[index] }
    : { kind: "own", training, index, seed: SEED };
}

// Compares a row, and the initial state of its rollout, with those made by a second instance of the environment. This
// finds randomness that is drawn while the module is loaded or the environment is built.

/** The differences by example. A setup that fails is not compared: its rollouts report the failure. */
export async function unsteadyResets(
  stage: Stage,
  examples: readonly Example[],
  uploaded: readonly unknown[],
): Promise<string[]> {
  const made = (code: EnvironmentCode) => () =>
    Promise.all(examples.map(({ index }) => reset(code, stage, index, uploaded)));
  const first = await made(stage.code)();
  const second = await stage.later(made(stage.secondInstance));
  return examples.flatMap(({ index }, at) => {
    const found = firstDifference(first[at] ?? null, second[at] ?? null, "");
    return found === null ? [] : [`row ${index}: ${found.slice(1)}`];
  });
}

async function reset(
  code: EnvironmentCode,
  stage: Stage,
  index: number,
  uploaded: readonly unknown[],
): Promise<JsonObject> {
  try {
    const made = await code.task(sourceOf(stage.code.description.dataset.kind, index, uploaded));
    // A row that only one instance refuses differs by its error.
    if ("fault" in made) return { row: made.fault.message, state: null };
    return { row: made.task.task, state: await stateAfterSetup(code, stage, made) };
  } catch (thrown) {
    // The instances may have different numbers of rows.
    if (!(thrown instanceof RangeError)) throw thrown;
    return { row: thrown.message, state: null };
  }
}

async function stateAfterSetup(
  code: EnvironmentCode,
  stage: Stage,
  { task }: Pick<MadeTask, "task">,
): Promise<JsonObject | null> {
  const rollout = newRollout({ ...task, id: "rollout", task_key: "task" }, 0);
  const player = await openPlayer(code, rollout, openHost(code, stage), { seed: SEED });
  const { event } = await player.perform({ kind: "setup" }, rollout);
  await player.dispose();
  return event.type === "set_up" ? event.state : null;
}
