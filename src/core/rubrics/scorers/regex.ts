/**
 * 1 when a pattern matches somewhere in the output: the option's, else the reference.
 *
 * Patterns are RE2's (https://github.com/google/re2/wiki/Syntax): JavaScript's without look-around and back-references. They
 * take time linear in the text, so no pattern and no output can hang a scorer that nothing outside could stop.
 */
import { RE2JS, RE2JSSyntaxException } from "re2js";
import * as z from "zod";
import { MalformedReferenceError, scorer } from "./scorer.ts";

const Pattern = z.string().superRefine((pattern, context) => {
  const fault = compile(pattern, 0);
  if (typeof fault === "string") context.addIssue({ code: "custom", message: fault });
});

export const regex = scorer(
  z.strictObject({
    pattern: Pattern.optional(),
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
      (ignore_case ? RE2JS.CASE_INSENSITIVE : 0) |
      (dot_all ? RE2JS.DOTALL : 0) |
      (multiline ? RE2JS.MULTILINE : 0);
    const given = pattern === undefined ? undefined : usable(pattern, flags);
    return (output, reference) => {
      const compiled = given ?? usable(reference, flags);
      return (full ? compiled.matches(output.trim()) : compiled.matcher(output).find()) ? 1 : 0;
    };
  },
);

function usable(pattern: string, flags: number): RE2JS {
  const compiled = pattern === "" ? "it is empty" : compile(pattern, flags);
  if (typeof compiled === "string") throw new MalformedReferenceError(compiled);
  return compiled;
}

/** The compiled pattern, or what is wrong with it. */
function compile(pattern: string, flags: number): RE2JS | string {
  try {
    return RE2JS.compile(pattern, flags);
  } catch (thrown) {
    if (!(thrown instanceof RE2JSSyntaxException)) throw thrown;
    return `is no RE2 pattern (no look-around, no back-references): ${thrown.message}`;
  }
}
