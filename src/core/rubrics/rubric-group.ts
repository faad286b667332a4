/**
 * Rubrics that score the same rollout together, one after the other. Their rewards are summed, and so are metrics of one
 * name from different rubrics. There is always at least one.
 */
import type { Parser } from "../parsers/parser.ts";
import { type AnyRubric, Rubric, type RubricLike } from "./rubric.ts";

export class RubricGroup {
  readonly rubrics: readonly AnyRubric[];

  constructor(rubrics: readonly AnyRubric[]) {
    if (rubrics.length === 0) throw new RangeError("a rubric group needs at least one rubric");
    this.rubrics = [...rubrics];
  }

  /** Judges a run must name, each once. */
  get judges(): readonly string[] {
    return [...new Set(this.rubrics.flatMap((rubric) => rubric.judges))];
  }

  /** Whether the members of a group must be scored together. */
  get hasGroupFunctions(): boolean {
    return this.rubrics.some((rubric) => rubric.functions.some((fn) => fn.group));
  }

  /** These rubrics, then another. */
  with(rubric: AnyRubric): RubricGroup {
    return new RubricGroup([...this.rubrics, rubric]);
  }
}

/** A group from whatever an environment was given. Options without a parser of their own get `parser`. */
export function asRubric<Task, S>(
  like: RubricLike<Task, S> | RubricGroup,
  parser?: Parser,
): RubricGroup {
  if (like instanceof RubricGroup) return like;
  const entries = isList(like) ? like : [like];
  const shared = parser === undefined ? {} : { parser };
  return new RubricGroup(
    entries.map((entry) => (isRubric(entry) ? entry : new Rubric({ ...shared, ...entry }))),
  );
}

type Entry<Task, S> = Exclude<RubricLike<Task, S>, readonly unknown[]>;

/** `Array.isArray` does not narrow a readonly array out of a union. */
function isList<Task, S>(like: RubricLike<Task, S>): like is readonly Entry<Task, S>[] {
  return Array.isArray(like);
}

function isRubric<Task, S>(entry: Entry<Task, S>): entry is AnyRubric<Task, S> {
  return entry instanceof Rubric;
}
