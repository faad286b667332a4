/**
 * Rubrics that score the same rollout together, one after the other. Their rewards are summed, and so are metrics of one
 * name from different rubrics. There is always at least one, and a group inside a group is its rubrics.
 */
import type { Reward, State } from "../environments/contract.ts";
import { type CleanupHandler, inOrder } from "../environments/stops.ts";
import type { Parser } from "../parsers/parser.ts";
import { type AnyRubric, Rubric, type RubricLike, type ScoreProvider } from "./rubric.ts";

export class RubricGroup {
  readonly rubrics: readonly AnyRubric[];

  constructor(rubrics: readonly (AnyRubric | RubricGroup)[]) {
    if (rubrics.length === 0) throw new RangeError("a rubric group needs at least one rubric");
    this.rubrics = rubrics.flatMap((entry) => (entry instanceof RubricGroup ? entry.rubrics : [entry]));
  }

  /** Judges a run must name, each once. */
  get judges(): readonly string[] {
    return [...new Set(this.rubrics.flatMap((rubric) => rubric.judges))];
  }

  /** Whether the members of a group must be scored together. */
  get hasGroupFunctions(): boolean {
    return this.rubrics.some((rubric) => rubric.functions.some((fn) => fn.group));
  }

  /** Of all rubrics, in one order. */
  get cleanupHandlers(): readonly CleanupHandler<State<unknown>>[] {
    return this.rubrics.flatMap((rubric) => rubric.cleanupHandlers).sort(inOrder);
  }

  get teardownHandlers(): readonly CleanupHandler<void>[] {
    return this.rubrics.flatMap((rubric) => rubric.teardownHandlers).sort(inOrder);
  }

  /** These rubrics, then another. */
  with(rubric: AnyRubric): RubricGroup {
    return new RubricGroup([...this.rubrics, rubric]);
  }

  /** To the first rubric. */
  addRewardFunc(name: string, fn: Reward<unknown, unknown>, weight?: number): void {
    this.#own[0]?.addRewardFunc(name, fn, weight);
  }

  /** To the first rubric. */
  addMetric(name: string, fn: Reward<unknown, unknown>): void {
    this.#own[0]?.addMetric(name, fn);
  }

  /** To the first rubric. */
  addClassObject(name: string, object: unknown): void {
    this.#own[0]?.addClassObject(name, object);
  }

  /** To every rubric. */
  addScoreProvider(provide: ScoreProvider<unknown, unknown>): void {
    for (const rubric of this.#own) rubric.addScoreProvider(provide);
  }

  /** As what can be added to; every rubric is one. */
  get #own(): Rubric[] {
    return this.rubrics.filter((rubric) => rubric instanceof Rubric);
  }
}

/** A group from whatever an environment was given. Options without a parser of their own get `parser`. */
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
