/**
 * A rubric: named, weighted functions that judge a finished rollout.
 *
 * Invariants. Functions are an ordered list and run in that order; the record form is its short spelling. A weight of 0
 * makes a metric: reported, never part of the reward. Names are given, never read off a function, because a minifier
 * renames functions. A rubric holds no results: one serves any number of rollouts at once.
 */
import type { GroupReward, Reward, ScoringArgs, Weighted } from "../environments/contract.ts";
import { refuseUnknownOptions } from "../options.ts";
import type { Parser } from "../parsers/parser.ts";

export interface RubricOptions<Task = unknown, S = unknown> {
  /** Weight 1 unless given as `{ fn, weight }`. */
  readonly rewards?: Readonly<Record<string, Weighted<Reward<Task, S>>>>;
  /** Called once with all members of a group that ended well; a score for each, in their order. */
  readonly groupRewards?: Readonly<Record<string, Weighted<GroupReward<Task, S>>>>;
  /** Weight 0. */
  readonly metrics?: Readonly<Record<string, Reward<Task, S>>>;
  /** What the functions get as `parser`; the environment's own when left out. */
  readonly parser?: Parser;
}

// `score` is a method, not a function property: its parameters are compared both ways, so that a rubric written for one
// task and state fits wherever rubrics are handled without knowing them. A stored row was parsed by the environment's
// own schema and the state was left by its own hooks, so a function does get the types it was written with.
export type ScoreFunction<Task = unknown, S = unknown> =
  | {
      readonly name: string;
      readonly weight: number;
      readonly group: false;
      score(args: ScoringArgs<Task, S>): ReturnType<Reward<Task, S>>;
    }
  | {
      readonly name: string;
      readonly weight: number;
      readonly group: true;
      score(group: readonly ScoringArgs<Task, S>[]): ReturnType<GroupReward<Task, S>>;
    };

/** A rubric as whoever scores with it sees it. */
export interface AnyRubric<Task = unknown, S = unknown> {
  /** What the functions get as `parser`; undefined: the environment's own. */
  readonly parser: Parser | undefined;
  /** Judges a run must name for this rubric to score. */
  readonly judges: readonly string[];
  /** In the order in which they run. */
  readonly functions: readonly ScoreFunction<Task, S>[];
}

type RubricEntry<Task, S> = AnyRubric<Task, S> | RubricOptions<Task, S>;
/** What an environment takes: a rubric, its options, or a list of them. */
export type RubricLike<Task, S> = RubricEntry<Task, S> | readonly RubricEntry<Task, S>[];

export class Rubric<Task = unknown, S = unknown> implements AnyRubric<Task, S> {
  readonly parser: Parser | undefined;
  readonly judges: readonly string[] = [];
  readonly #functions: ScoreFunction<Task, S>[] = [];

  constructor(options: RubricOptions<Task, S> = {}) {
    refuseUnknownOptions("a rubric", options, ["rewards", "groupRewards", "metrics", "parser"]);
    this.parser = options.parser;
    for (const [name, reward] of Object.entries(options.rewards ?? {})) {
      this.addRewardFunc(name, ...unpack(reward));
    }
    for (const [name, reward] of Object.entries(options.groupRewards ?? {})) {
      this.addGroupRewardFunc(name, ...unpack(reward));
    }
    for (const [name, metric] of Object.entries(options.metrics ?? {})) {
      this.addMetric(name, metric);
    }
  }

  /** The list form: functions that may share a name, and a weight for each (1 when `weights` is left out or empty). */
  static fromLists<Task, S>(lists: {
    readonly funcs: readonly { readonly name: string; readonly fn: Reward<Task, S> }[];
    readonly weights?: readonly number[];
  }): Rubric<Task, S> {
    const { funcs, weights = [] } = lists;
    if (weights.length > 0 && weights.length !== funcs.length) {
      throw new RangeError(`${weights.length} weights for ${funcs.length} functions`);
    }
    const rubric = new Rubric<Task, S>();
    for (const [index, { name, fn }] of funcs.entries()) {
      rubric.addRewardFunc(name, fn, weights[index]);
    }
    return rubric;
  }

  get functions(): readonly ScoreFunction<Task, S>[] {
    return this.#functions;
  }

  addRewardFunc(name: string, fn: Reward<Task, S>, weight = 1): void {
    checkFunction(name, fn, weight);
    this.#functions.push({ name, weight, group: false, score: fn });
  }

  addGroupRewardFunc(name: string, fn: GroupReward<Task, S>, weight = 1): void {
    checkFunction(name, fn, weight);
    this.#functions.push({ name, weight, group: true, score: fn });
  }

  addMetric(name: string, fn: Reward<Task, S>): void {
    this.addRewardFunc(name, fn, 0);
  }
}

function unpack<F extends (...args: never[]) => unknown>(reward: Weighted<F>): [F, number] {
  return typeof reward === "function" ? [reward, 1] : [reward.fn, reward.weight];
}

function checkFunction(name: string, fn: unknown, weight: number): void {
  if (typeof fn !== "function") throw new TypeError(`the score ${name} is not a function`);
  if (!Number.isFinite(weight)) throw new RangeError(`the weight of ${name} is ${weight}`);
}
