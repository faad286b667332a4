/** What the rollouts of one step were like, and how two steps differ. Pure: takes rows of the list of rollouts. */
import type { RolloutSummary } from "../../../contract/rollout-list.ts";
import type { OutlineTurn } from "../../../contract/turns.ts";
import { failedIn } from "./failed-calls.ts";

export interface TaskFacts {
  readonly task_key: string | null;
  readonly task_text: string | null;
  readonly group: number;
  /** Mean reward over its scored rollouts; null if none was scored. */
  readonly mean: number | null;
  readonly rollouts: number;
}

export interface ScoreFacts {
  readonly weight: number;
  /** Mean over the rollouts that have the score. */
  readonly mean: number | null;
}

export interface StepFacts {
  readonly rollouts: number;
  readonly scored: number;
  /** Mean over the scored rollouts. */
  readonly reward: number | null;
  /** Shares of the rollouts, from 0 to 1. */
  readonly cut_off: number | null;
  readonly failed: number | null;
  /** Means over the ended rollouts. */
  readonly turns: number | null;
  readonly tokens: number | null;
  /** Seconds. */
  readonly duration: number | null;
  readonly scores: ReadonlyMap<string, ScoreFacts>;
  /** Shares of the rollouts, by the condition that stopped them. */
  readonly stops: ReadonlyMap<string, number>;
  /** By task_key; the lowest mean reward first. */
  readonly tasks: readonly TaskFacts[];
}

export function factsOfStep(rows: readonly RolloutSummary[]): StepFacts {
  const share = (is: (row: RolloutSummary) => boolean) =>
    rows.length === 0 ? null : rows.filter(is).length / rows.length;
  const stops = Map.groupBy(rows, ({ stop_condition }) => stop_condition ?? "");
  return {
    rollouts: rows.length,
    scored: rows.filter(({ reward }) => reward !== null).length,
    reward: meanOf(rows.map(({ reward }) => reward)),
    cut_off: share(({ is_truncated }) => is_truncated),
    failed: share(({ outcome }) => outcome === "failed"),
    turns: meanOf(rows.map(({ turns }) => turns)),
    tokens: meanOf(rows.map(({ completion_tokens }) => completion_tokens)),
    duration: meanOf(rows.map(({ duration }) => duration)),
    scores: scoresOf(rows),
    stops: new Map([...stops].flatMap(([name, of]) => (name === "" ? [] : [[name, of.length / rows.length]]))),
    tasks: tasksOf(rows),
  };
}

function scoresOf(rows: readonly RolloutSummary[]): Map<string, ScoreFacts> {
  const all = Map.groupBy(
    rows.flatMap(({ scores }) => scores),
    ({ name }) => name,
  );
  return new Map(
    [...all].map(([name, of]) => [name, { weight: of[0]?.weight ?? 0, mean: meanOf(of.map(({ score }) => score)) }]),
  );
}

function tasksOf(rows: readonly RolloutSummary[]): TaskFacts[] {
  const groups = Map.groupBy(rows, ({ task_key, group }) => task_key ?? `group ${group}`);
  const tasks = [...groups.values()].flatMap((of): TaskFacts[] => {
    const [first] = of;
    if (first === undefined) return [];
    const { task_key, task_text, group } = first;
    return [{ task_key, task_text, group, mean: meanOf(of.map(({ reward }) => reward)), rollouts: of.length }];
  });
  return tasks.sort((one, other) => (one.mean ?? Infinity) - (other.mean ?? Infinity) || one.group - other.group);
}

/** Null if every value is null. */
function meanOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}

export interface ScoreChange {
  readonly name: string;
  readonly weight: number;
  readonly before: number | null;
  readonly now: number | null;
  /** weight × change: its part of the change of the reward; null if one side has no value. */
  readonly part: number | null;
}

/** The largest part of the change first; scores of weight 0 last. */
export function scoreChanges(before: StepFacts, now: StepFacts): readonly ScoreChange[] {
  const names = new Set([...now.scores.keys(), ...before.scores.keys()]);
  const changes = [...names].map((name): ScoreChange => {
    const [then, later] = [before.scores.get(name), now.scores.get(name)];
    const weight = later?.weight ?? then?.weight ?? 0;
    const [from, to] = [then?.mean ?? null, later?.mean ?? null];
    return { name, weight, before: from, now: to, part: from === null || to === null ? null : weight * (to - from) };
  });
  const size = ({ part }: ScoreChange) => Math.abs(part ?? 0);
  return changes.sort((one, other) => Number(one.weight === 0) - Number(other.weight === 0) || size(other) - size(one));
}

export interface SharedTasks {
  /** Tasks that both steps have. */
  readonly n: number;
  /** Their mean rewards in the two steps; null without any. */
  readonly before: number | null;
  readonly now: number | null;
}

export function sharedTasks(before: StepFacts, now: StepFacts): SharedTasks {
  const known = taskMeans(before);
  const pairs = now.tasks.flatMap(({ task_key, mean }): (readonly [number, number])[] => {
    const then = task_key === null ? undefined : known.get(task_key);
    return then == null || mean === null ? [] : [[then, mean]];
  });
  return { n: pairs.length, before: meanOf(pairs.map(([then]) => then)), now: meanOf(pairs.map(([, later]) => later)) };
}

/** Mean reward by task_key. */
export function taskMeans({ tasks }: StepFacts): ReadonlyMap<string, number | null> {
  return new Map(tasks.flatMap(({ task_key, mean }) => (task_key === null ? [] : [[task_key, mean]])));
}

/** Changes of a share from which on it is named as a cause, in points of 1. */
const LARGE_SHARE = 0.05;
/** Changes of a length that are named, as a part of what it was. */
const LARGE_LENGTH = 0.2;

export interface Cause {
  readonly kind: "score" | "cut off" | "failed" | "stop" | "tokens" | "turns" | "tools";
  /** The name of the score, of the stop condition or of the tool. */
  readonly name: string;
  readonly before: number;
  readonly now: number;
  /** Of a score: its part of the change of the reward. */
  readonly part: number | null;
}

/** What changed enough to be named, in this order: scores, what ended rollouts, lengths. */
export function causesOf(before: StepFacts, now: StepFacts): readonly Cause[] {
  const scores = scoreChanges(before, now).flatMap(({ name, weight, part, ...of }): Cause[] => {
    if (weight === 0 || part === null || of.before === null || of.now === null) return [];
    return Math.abs(part) < 0.005 ? [] : [{ kind: "score", name, before: of.before, now: of.now, part }];
  });
  const stops = new Set([...before.stops.keys(), ...now.stops.keys()]);
  return [
    ...scores,
    ...ofShare("cut off", "", before.cut_off, now.cut_off),
    ...ofShare("failed", "", before.failed, now.failed),
    ...[...stops].flatMap((name) => ofShare("stop", name, before.stops.get(name) ?? 0, now.stops.get(name) ?? 0)),
    ...ofLength("tokens", before.tokens, now.tokens),
    ...ofLength("turns", before.turns, now.turns),
  ];
}

function ofShare(kind: Cause["kind"], name: string, before: number | null, now: number | null): Cause[] {
  if (before === null || now === null || Math.abs(now - before) < LARGE_SHARE) return [];
  return [{ kind, name, before, now, part: null }];
}

function ofLength(kind: Cause["kind"], before: number | null, now: number | null): Cause[] {
  if (before === null || now === null || Math.abs(now - before) < LARGE_LENGTH * Math.max(before, 1e-9)) return [];
  return [{ kind, name: "", before, now, part: null }];
}

/** Calls of one tool, and how many of them failed. */
export interface ToolCalls {
  readonly calls: number;
  readonly failed: number;
  /** The rollouts with a failed call, each with the first turns that have one, from 0. */
  readonly failing: readonly { readonly rollout: string; readonly turns: readonly number[] }[];
}

/** Tools whose share of failed calls changed much, the largest change first. */
export function toolCauses(
  before: ReadonlyMap<string, ToolCalls>,
  now: ReadonlyMap<string, ToolCalls>,
): readonly Cause[] {
  const share = (of: ToolCalls | undefined) => (of === undefined || of.calls === 0 ? 0 : of.failed / of.calls);
  const names = new Set([...before.keys(), ...now.keys()]);
  const causes = [...names].flatMap((name) => ofShare("tools", name, share(before.get(name)), share(now.get(name))));
  return causes.sort((one, other) => Math.abs(other.now - other.before) - Math.abs(one.now - one.before));
}

/** The most turns of a rollout that are kept for one tool. */
export const FAILING_TURNS = 5;

/**
 * Adds the calls of a rollout's turns. A turn that calls several tools counts under all their names together, because
 * an outline does not say which of them failed.
 */
export function countTools(rollout: string, turns: readonly OutlineTurn[], counts: Map<string, ToolCalls>): void {
  for (const [at, turn] of turns.entries()) {
    const { index, tool_calls, tools } = turn;
    if (tool_calls === 0) continue;
    const failed = failedIn(turn, turns[at + 1]);
    const name = tools.join(" and ");
    const known = counts.get(name) ?? { calls: 0, failed: 0, failing: [] };
    counts.set(name, {
      calls: known.calls + tool_calls,
      failed: known.failed + failed,
      failing: failed > 0 ? withTurn(known.failing, rollout, index) : known.failing,
    });
  }
}

/** A rollout with many failing turns counts no more than `FAILING_TURNS` of them. */
function withTurn(failing: ToolCalls["failing"], rollout: string, turn: number): ToolCalls["failing"] {
  const known = failing.find((one) => one.rollout === rollout)?.turns ?? [];
  if (known.length >= FAILING_TURNS) return failing;
  return [...failing.filter((one) => one.rollout !== rollout), { rollout, turns: [...known, turn] }];
}
