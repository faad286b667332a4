/**
 * The form of a ready scorer: options, and a pure comparison of an output with a reference.
 *
 * Invariants. Scores lie in [0, 1]. What the model thought is no part of its output (parsers/thoughts.ts). What the model said can only score low; a reference that cannot be used, written by
 * whoever made the dataset, is no score (`NoScoreError`), never 0. What takes more than time linear in the texts is
 * counted before it is done, against the budget of the score and of its unit (`Work`): beyond it there is no score.
 */
import type * as z from "zod";
import type { Reward } from "../../environments/contract.ts";
import { withoutThoughts } from "../../parsers/thoughts.ts";
import { NoScoreError } from "../score-value.ts";
import { type Budgeted, scoreWork, type Work } from "../work.ts";

export interface Scorer<Options extends z.ZodObject> {
  /** A reward function over the parser's answer and the row's `answer`. */
  (options?: z.input<Options>): Reward<unknown, unknown>;
  readonly options: Options;
  /**
   * The same, of two texts. Throws `ZodError` for other options, `NoScoreError` where there is no score. `args`: of the
   * scoring function that asks, whose unit the work counts for.
   */
  score(output: string, reference: string, options?: Readonly<Record<string, unknown>>, args?: Budgeted): number;
}

export type Compare = (output: string, reference: string, work: Work) => number;

/** `prepare` does once what hangs on the options alone. */
export function scorer<Options extends z.ZodObject>(
  options: Options,
  prepare: (options: z.output<Options>) => Compare,
): Scorer<Options> {
  const asReward = (given?: z.input<Options>): Reward<unknown, unknown> => {
    const compare = prepare(options.parse(given ?? {}));
    return (args) => {
      const { parser, completion, answer } = args;
      return compare(withoutThoughts(parser.parseAnswer(completion) ?? ""), answer, scoreWork(args));
    };
  };
  const prepared = new WeakMap<object, Compare>();
  const score: Scorer<Options>["score"] = (output, reference, given = {}, args = {}) => {
    // A grader asks with the same options for every rollout: their pattern or schema is read once.
    const compare = prepared.get(given) ?? prepare(options.parse(given));
    prepared.set(given, compare);
    return compare(withoutThoughts(output), reference, scoreWork(args));
  };
  return Object.assign(asReward, { options, score });
}

/** A reference that cannot be compared with. */
export class MalformedReferenceError extends NoScoreError {
  override readonly name = "MalformedReferenceError";

  constructor(why: string) {
    super("scorer", `the reference cannot be used: ${why}`);
  }
}

/** Characters either text may have where comparing takes the product of their lengths. */
const COMPARED_CHARACTERS = 50_000;

/** A longer output scores 0, a longer reference cannot be used. */
export function withinCharacters(compare: Compare): Compare {
  return (output, reference, work) => {
    if (reference.length > COMPARED_CHARACTERS) {
      throw new MalformedReferenceError(`it has more than ${COMPARED_CHARACTERS} characters`);
    }
    return output.length > COMPARED_CHARACTERS ? 0 : compare(output, reference, work);
  };
}
