/**
 * The form of a built-in scorer: options, and a pure comparison of an output with a reference.
 *
 * Invariants. Scores are in [0, 1]. The model's reasoning is not part of its output (parsers/thoughts.ts). A bad output
 * scores low. A reference that cannot be used is a fault of the dataset and gives no score (`NoScoreError`), never 0.
 * Work that is more than linear in the texts is counted before it is done, against the budget of the score and of its
 * scoring group (`Work`): beyond the budget there is no score.
 */
import type * as z from "zod";
import type { Reward } from "../../environments/contract.ts";
import { withoutThoughts } from "../../parsers/thoughts.ts";
import { NoScoreError } from "../score-value.ts";
import { type Budgeted, scoreWork, type Work } from "../work.ts";

export interface Scorer<Options extends z.ZodObject> {
  /** Makes a reward function that compares the parser's answer with the row's `answer`. */
  (options?: z.input<Options>): Reward<unknown, unknown>;
  readonly options: Options;
  /**
   * Compares two texts. Throws `ZodError` for invalid options, `NoScoreError` if there is no score. `args`: those of
   * the calling scoring function, whose scoring group is charged for the work.
   */
  score(output: string, reference: string, options?: Readonly<Record<string, unknown>>, args?: Budgeted): number;
}

export type Compare = (output: string, reference: string, work: Work) => number;

/** `prepare` is called once per options, and does the work that only depends on them. */
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
    // A grader calls this with the same options for every rollout: their pattern or schema is compiled only once.
    const compare = prepared.get(given) ?? prepare(options.parse(given));
    prepared.set(given, compare);
    return compare(withoutThoughts(output), reference, scoreWork(args));
  };
  return Object.assign(asReward, { options, score });
}

/** The reference cannot be compared. */
export class MalformedReferenceError extends NoScoreError {
  override readonly name = "MalformedReferenceError";

  constructor(why: string) {
    super("scorer", `the reference cannot be used: ${why}`);
  }
}

/** Maximal length of each text if the comparison takes the product of their lengths. */
const COMPARED_CHARACTERS = 50_000;

/** A longer output scores 0; a longer reference cannot be used. */
export function withinCharacters(compare: Compare): Compare {
  return (output, reference, work) => {
    if (reference.length > COMPARED_CHARACTERS) {
      throw new MalformedReferenceError(`it has more than ${COMPARED_CHARACTERS} characters`);
    }
    return output.length > COMPARED_CHARACTERS ? 0 : compare(output, reference, work);
  };
}
