/**
 * 1 when a pattern matches somewhere in the output: the option's, else the reference.
 *
 * Patterns are RE2's (https://github.com/google/re2/wiki/Syntax): JavaScript's without look-around and back-references. What
 * compiling and matching take is counted beforehand (core/schema/pattern.ts).
 */
import { RE2JS } from "re2js";
import * as z from "zod";
import { Pattern, PatternError } from "../../schema/pattern.ts";
import { scoreWork, type Work, WorkBudgetError } from "../work.ts";
import { MalformedReferenceError, scorer } from "./scorer.ts";

const PatternText = z
  .string()
  .min(1, "is empty")
  .superRefine((pattern, context) => {
    try {
      new Pattern(pattern, scoreWork());
    } catch (thrown) {
      if (!(thrown instanceof PatternError || thrown instanceof WorkBudgetError)) throw thrown;
      context.addIssue({ code: "custom", message: thrown.message });
    }
  });

export const regex = scorer(
  z.strictObject({
    pattern: PatternText.optional(),
    ignore_case: z.boolean().default(false),
    /** `.` matches a line's end too. */
    dot_all: z.boolean().default(false),
    /** `^` and `$` match at every line. */
    multiline: z.boolean().default(false),
    /** The whole output must match, white space around it aside. */
    full: z.boolean().default(false),
  }),
  ({ pattern, ignore_case, dot_all, multiline, full }) => {
    const flags =
      (ignore_case ? RE2JS.CASE_INSENSITIVE : 0) | (dot_all ? RE2JS.DOTALL : 0) | (multiline ? RE2JS.MULTILINE : 0);
    const given = pattern === undefined ? undefined : usable(pattern, flags, scoreWork());
    return (output, reference, work) => {
      const compiled = given ?? usable(reference, flags, work);
      const found = full ? compiled.matches(output.trim(), work) : compiled.isIn(output, work);
      return found ? 1 : 0;
    };
  },
);

function usable(pattern: string, flags: number, work: Work): Pattern {
  if (pattern === "") throw new MalformedReferenceError("it is empty");
  try {
    return new Pattern(pattern, work, flags);
  } catch (thrown) {
    if (thrown instanceof PatternError) throw new MalformedReferenceError(thrown.message);
    throw thrown;
  }
}
