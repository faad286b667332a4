/** 1 when output and reference are the same mathematics, by the rules of `MathRubric`. */
import * as z from "zod";
import { mathEqual } from "../../math/equivalence.ts";
import { extractMathAnswer, extractMathTarget } from "../../math/extract.ts";
import { scorer } from "./scorer.ts";

export const math = scorer(
  z.strictObject({
    /** Only what stands in `\boxed{…}` is an answer. */
    strict: z.boolean().default(false),
    /** Reads 5 % as 0.05. */
    percent_is_ratio: z.boolean().default(false),
  }),
  ({ strict, percent_is_ratio }) =>
    (output, reference, work) => {
      const answer = extractMathAnswer(output, strict) ?? "";
      const options = { percentIsRatio: percent_is_ratio };
      return mathEqual(answer, extractMathTarget(reference), options, work) ? 1 : 0;
    },
);
