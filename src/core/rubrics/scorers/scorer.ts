/**
 * The form of a ready scorer: options, and a pure comparison of an output with a reference.
 *
 * Invariants. Scores lie in [0, 1]. What the model said can only score low; a reference that cannot be used, written by
 * whoever made the dataset, is no score (`NoScoreError`), never 0. Work is bounded by sizes, never by a clock.
 */
import type * as z from "zod";
import type { Reward } from "../../environments/contract.ts";
import { NoScoreError } from "../score-value.ts";

export interface Scorer<Options extends z.ZodObject> {
  /** A reward function over the parser's answer and the row's `answer`. */
  (options?: z.input<Options>): Reward<unknown, unknown>;
  readonly options: Options;
  /** The same, of two texts. Throws `ZodError` for other options, `NoScoreError` where there is no score. */
  score(output: string, reference: string, options?: Readonly<Record<string, unknown>>): number;
}

export type Compare = (output: string, reference: string) => number;

/** `prepare` does once what hangs on the options alone. */
export function scorer<Options extends z.ZodObject>(
  options: Options,
  prepare: (options: z.output<Options>) => Compare,
): Scorer<Options> {
  const asReward = (given?: z.input<Options>): Reward<unknown, unknown> => {
    const compare = prepare(options.parse(given ?? {}));
    return ({ parser, completion, answer }) =>
      compare(parser.parseAnswer(completion) ?? "", answer);
  };
  const score: Compare & Scorer<Options>["score"] = (output, reference, given = {}) =>
    prepare(options.parse(given))(output, reference);
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
  return (output, reference) => {
    if (reference.length > COMPARED_CHARACTERS) {
      throw new MalformedReferenceError(`it has more than ${COMPARED_CHARACTERS} characters`);
    }
    return output.length > COMPARED_CHARACTERS ? 0 : compare(output, reference);
  };
}
