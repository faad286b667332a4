/**
 * A rubric: named, weighted functions that score a finished rollout.
 *
 * Invariants. Functions are an ordered list and run in that order; the record form is an abbreviation of it. A weight
 * of 0 makes a metric: reported, never part of the reward. Names are given and never taken from a function, because a
 * minifier renames functions. A rubric stores no results: one serves any number of rollouts at once.
 */

import { LIMITS } from "../../contract/limits.ts";
import { requireName } from "../../contract/shown-text.ts";
import type {
  Awaitable,
  Cleanup,
  GroupArgs,
  GroupReward,
  Reward,
  RewardArgs,
  ScoringArgs,
  State,
  Weighted,
} from "../environments/contract.ts";
import { type CleanupHandler, cleanupHandlers, inOrder } from "../environments/stops.ts";
import { refuseUnknownOptions } from "../field-path.ts";
import type { Parser } from "../parsers/parser.ts";

export interface RubricOptions<Task = unknown, S = unknown, Objects extends object = object> {
  /** Weight 1 unless given as `{ fn, weight }`. */
  readonly rewards?: Readonly<Record<string, Weighted<Reward<Task, S, NoInfer<Objects>>>>>;
  /** Called once with all members of a group that ended well; returns a score per member, in their order. */
  readonly groupRewards?: Readonly<Record<string, Weighted<GroupReward<Task, S, NoInfer<Objects>>>>>;
  /** Weight 0. */
  readonly metrics?: Readonly<Record<string, Reward<Task, S, NoInfer<Objects>>>>;
  readonly groupMetrics?: Readonly<Record<string, GroupReward<Task, S, NoInfer<Objects>>>>;
  /** The `parser` argument of the functions; the environment's own if absent. */
  readonly parser?: Parser;
  /** Class objects: additional arguments of every function, by name. They replace arguments of that name. */
  readonly objects?: Partial<Objects>;
  /** Score objects: created for each call of a function, and added last to its arguments, by name. */
  readonly provide?: ScoreProvider<Task, S, NoInfer<Objects>>;
  /** Judges that functions call with `judge`: a run must configure them. */
  readonly judges?: readonly string[];
  /**
   * For each judge whose replies the functions read themselves (`judge(prompt)` without labels and range): replies that
   * it may give, the worst first. `rollcall env validate` plays them.
   */
  readonly judgements?: Readonly<Record<string, readonly string[]>>;
  /** Run for each rollout after scoring, by priority, then name. An error in one is recorded and removes no score. */
  readonly cleanup?: Readonly<Record<string, Cleanup<State<Task, S>>>>;
  /** Run when an instance of the environment is retired, by priority, then name. */
  readonly teardown?: Readonly<Record<string, Cleanup<void>>>;
}

const OPTIONS: readonly (keyof RubricOptions)[] = [
  "rewards",
  "groupRewards",
  "metrics",
  "groupMetrics",
  "parser",
  "objects",
  "provide",
  "judges",
  "judgements",
  "cleanup",
  "teardown",
];

/** Named objects for one call of a scoring function. */
export type ScoreProvider<Task, S, Objects = object> = (args: ScoringArgs<Task, S>) => Awaitable<Partial<Objects>>;

// `score` is a method, not a function property: its parameters are compared bivariantly, so that a rubric for one task
// and state type is assignable where the types are unknown. A stored row was parsed by the environment's own schema and
// the state was written by its own hooks, so a function does get the types it was written with.
export type ScoreFunction<Task = unknown, S = unknown> =
  | {
      readonly name: string;
      readonly weight: number;
      readonly group: false;
      score(args: RewardArgs<Task, S>): ReturnType<Reward<Task, S>>;
    }
  | {
      readonly name: string;
      readonly weight: number;
      readonly group: true;
      score(group: readonly RewardArgs<Task, S>[], shared: GroupArgs): ReturnType<GroupReward<Task, S>>;
    };

/** The interface of a rubric for the code that scores with it. */
export interface AnyRubric<Task = unknown, S = unknown> {
  /** The `parser` argument of the functions; undefined: the environment's own. */
  readonly parser: Parser | undefined;
  /** Judges that a run must configure for this rubric. */
  readonly judges: readonly string[];
  /** As in `RubricOptions`. */
  readonly judgements: Readonly<Record<string, readonly string[]>>;
  /** In the order in which they run. */
  readonly functions: readonly ScoreFunction<Task, S>[];
  /** Class objects by name. */
  readonly objects: object;
  /** Score objects for one call of a function. */
  provided(args: ScoringArgs<Task, S>): Promise<object>;
  readonly cleanupHandlers: readonly CleanupHandler<State<Task, S>>[];
  readonly teardownHandlers: readonly CleanupHandler<void>[];
}

type RubricEntry<Task, S> = AnyRubric<Task, S> | RubricOptions<Task, S>;
/** The `rubric` option of an environment: a rubric, its options, or a list of them. */
export type RubricLike<Task, S> = RubricEntry<Task, S> | readonly RubricEntry<Task, S>[];

/** An entry of the list form; `group: true` marks a function of the whole group. */
type ListedFunction<Task, S> =
  | { readonly name: string; readonly fn: Reward<Task, S>; readonly group?: false }
  | { readonly name: string; readonly fn: GroupReward<Task, S>; readonly group: true };

/** `Objects`: additional arguments of the functions, by name: class objects, and those of providers. */
export class Rubric<Task = unknown, S = unknown, Objects extends object = object> implements AnyRubric<Task, S> {
  readonly parser: Parser | undefined;
  readonly judges: readonly string[];
  readonly judgements: Readonly<Record<string, readonly string[]>>;
  readonly cleanupHandlers: readonly CleanupHandler<State<Task, S>>[];
  readonly teardownHandlers: readonly CleanupHandler<void>[];
  readonly #functions: ScoreFunction<Task, S>[] = [];
  readonly #objects: Partial<Objects>;
  readonly #providers: ScoreProvider<Task, S, Objects>[] = [];

  constructor(options: RubricOptions<Task, S, Objects> = {}) {
    refuseUnknownOptions("a rubric", options, OPTIONS);
    this.parser = options.parser;
    this.judges = options.judges ?? [];
    this.judgements = options.judgements ?? {};
    checkJudgements(this.judgements, this.judges);
    this.cleanupHandlers = cleanupHandlers(options.cleanup ?? {});
    this.teardownHandlers = cleanupHandlers(options.teardown ?? {});
    this.#objects = { ...options.objects };
    if (options.provide !== undefined) this.addScoreProvider(options.provide);
    for (const [name, reward] of Object.entries(options.rewards ?? {})) {
      this.addRewardFunc(name, ...unpack(reward));
    }
    for (const [name, reward] of Object.entries(options.groupRewards ?? {})) {
      this.addGroupRewardFunc(name, ...unpack(reward));
    }
    for (const [name, metric] of Object.entries(options.metrics ?? {})) {
      this.addMetric(name, metric);
    }
    for (const [name, metric] of Object.entries(options.groupMetrics ?? {})) {
      this.addGroupMetric(name, metric);
    }
  }

  /** The list form: functions that may share a name, and a weight for each (1 if `weights` is absent or empty). */
  static fromLists<Task, S>(lists: {
    readonly funcs: readonly ListedFunction<Task, S>[];
    readonly weights?: readonly number[];
  }): Rubric<Task, S> {
    const { funcs, weights = [] } = lists;
    if (weights.length > 0 && weights.length !== funcs.length) {
      throw new RangeError(`${weights.length} weights for ${funcs.length} functions`);
    }
    const rubric = new Rubric<Task, S>();
    for (const [index, listed] of funcs.entries()) {
      if (listed.group) rubric.addGroupRewardFunc(listed.name, listed.fn, weights[index]);
      else rubric.addRewardFunc(listed.name, listed.fn, weights[index]);
    }
    return rubric;
  }

  get functions(): readonly ScoreFunction<Task, S>[] {
    return this.#functions;
  }

  get objects(): object {
    return this.#objects;
  }

  addRewardFunc(name: string, fn: Reward<Task, S, Objects>, weight = 1): void {
    checkFunction(name, fn, weight);
    this.#functions.push({ name, weight, group: false, score: fn });
  }

  addGroupRewardFunc(name: string, fn: GroupReward<Task, S, Objects>, weight = 1): void {
    checkFunction(name, fn, weight);
    this.#functions.push({ name, weight, group: true, score: fn });
  }

  addMetric(name: string, fn: Reward<Task, S, Objects>): void {
    this.addRewardFunc(name, fn, 0);
  }

  addGroupMetric(name: string, fn: GroupReward<Task, S, Objects>): void {
    this.addGroupRewardFunc(name, fn, 0);
  }

  /** If two objects have the same name, the later one replaces the earlier. */
  addClassObject(name: string, object: unknown): void {
    Object.assign(this.#objects, { [name]: object });
  }

  /** If two providers give the same name, the later one is used. */
  addScoreProvider(provide: ScoreProvider<Task, S, Objects>): void {
    this.#providers.push(provide);
  }

  async provided(args: ScoringArgs<Task, S>): Promise<object> {
    const each: object[] = [];
    for (const provide of this.#providers) each.push(await provide(args));
    return Object.assign({}, ...each) as object;
  }
}

function unpack<F extends (...args: never[]) => unknown>(reward: Weighted<F>): [F, number] {
  return typeof reward === "function" ? [reward, 1] : [reward.fn, reward.weight];
}

function checkFunction(name: string, fn: unknown, weight: number): void {
  requireName("the score", name);
  if (typeof fn !== "function") throw new TypeError(`the score ${name} is not a function`);
  if (!Number.isFinite(weight)) throw new RangeError(`the weight of ${name} is ${weight}`);
}

/** Of the declared replies of one judge. */
const MOST_REPLIES = 20;

function checkJudgements(judgements: Readonly<Record<string, readonly string[]>>, judges: readonly string[]): void {
  for (const [judge, replies] of Object.entries(judgements)) {
    const fault = (why: string) => new RangeError(`judgements.${judge}: ${why}`);
    if (!judges.includes(judge)) throw fault("the rubric has no such judge: list it in judges");
    if (!Array.isArray(replies) || replies.length === 0 || replies.length > MOST_REPLIES) {
      throw fault(`must be a list of 1 to ${MOST_REPLIES} replies`);
    }
    const most = LIMITS.judgementCharacters;
    if (!replies.every((reply) => typeof reply === "string" && reply.trim() !== "" && reply.length <= most)) {
      throw fault(`each reply must be a text of 1 to ${most} characters`);
    }
  }
}

/**
 * Rubrics that score the same rollout together, one after the other. Their rewards are added, and so are metrics of the
 * same name from different rubrics. There is always at least one rubric; a group inside a group is flattened.
 */
export class RubricGroup {
  readonly rubrics: readonly AnyRubric[];

  constructor(rubrics: readonly (AnyRubric | RubricGroup)[]) {
    if (rubrics.length === 0) throw new RangeError("a rubric group needs at least one rubric");
    this.rubrics = rubrics.flatMap((entry) => (entry instanceof RubricGroup ? entry.rubrics : [entry]));
  }

  /** Judges that a run must configure, each once. */
  get judges(): readonly string[] {
    return [...new Set(this.rubrics.flatMap((rubric) => rubric.judges))];
  }

  /** For each judge the declared replies of all rubrics, each once. */
  get judgements(): Readonly<Record<string, readonly string[]>> {
    const all = this.rubrics.flatMap((rubric) => Object.entries(rubric.judgements));
    const byJudge = Map.groupBy(all, ([judge]) => judge);
    return Object.fromEntries(
      [...byJudge].map(([judge, lists]) => [judge, [...new Set(lists.flatMap(([, replies]) => replies))]]),
    );
  }

  /** Whether all members of a group must be scored together. */
  get hasGroupFunctions(): boolean {
    return this.rubrics.some((rubric) => rubric.functions.some((fn) => fn.group));
  }

  /** The cleanup handlers of all rubrics, in one order. */
  get cleanupHandlers(): readonly CleanupHandler<State<unknown>>[] {
    return this.rubrics.flatMap((rubric) => rubric.cleanupHandlers).sort(inOrder);
  }

  get teardownHandlers(): readonly CleanupHandler<void>[] {
    return this.rubrics.flatMap((rubric) => rubric.teardownHandlers).sort(inOrder);
  }

  /** This group with another rubric at the end. */
  with(rubric: AnyRubric): RubricGroup {
    return new RubricGroup([...this.rubrics, rubric]);
  }

  /** Adds to the first rubric. */
  addRewardFunc(name: string, fn: Reward<unknown, unknown>, weight?: number): void {
    this.#own[0]?.addRewardFunc(name, fn, weight);
  }

  /** Adds to the first rubric. */
  addMetric(name: string, fn: Reward<unknown, unknown>): void {
    this.#own[0]?.addMetric(name, fn);
  }

  /** Adds to the first rubric. */
  addClassObject(name: string, object: unknown): void {
    this.#own[0]?.addClassObject(name, object);
  }

  /** Adds to every rubric. */
  addScoreProvider(provide: ScoreProvider<unknown, unknown>): void {
    for (const rubric of this.#own) rubric.addScoreProvider(provide);
  }

  /** The rubrics of the class `Rubric`, which can be extended; all are. */
  get #own(): Rubric[] {
    return this.rubrics.filter((rubric) => rubric instanceof Rubric);
  }
}

/** Makes a group from any form of the `rubric` option. Options without a parser get `parser`. */
export function asRubric<Task, S>(like: RubricLike<Task, S> | RubricGroup, parser?: Parser): RubricGroup {
  if (like instanceof RubricGroup) return like;
  const entries = isList(like) ? like : [like];
  const shared = parser === undefined ? {} : { parser };
  return new RubricGroup(entries.map((entry) => (isRubric(entry) ? entry : new Rubric({ ...shared, ...entry }))));
}

type Entry<Task, S> = Exclude<RubricLike<Task, S>, readonly unknown[]>;

/** `Array.isArray` does not narrow a readonly array out of a union. */
function isList<Task, S>(like: RubricLike<Task, S>): like is readonly Entry<Task, S>[] {
  return Array.isArray(like);
}

function isRubric<Task, S>(entry: Entry<Task, S>): entry is AnyRubric<Task, S> {
  return entry instanceof Rubric;
}
