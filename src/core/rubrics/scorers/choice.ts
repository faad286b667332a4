/**
 * 1 when the letter the model chose is the reference's.
 *
 * The letter is looked for, in this order: in the last `\boxed{…}`; after the last "answer is" or "answer:"; as the whole
 * output or its first mark, `B`, `(B)`, `B.`, `B) because …`; the last one in brackets; the last one that stands alone on a line.
 */
import * as z from "zod";
import { extractBoxedAnswer } from "../../../../packages/math-equivalence/extract.ts";
import { MalformedReferenceError, scorer } from "./scorer.ts";

export const choice = scorer(
  z.strictObject({
    /** The letters there are. */
    choices: z
      .string()
      .regex(/^[A-Z]{2,26}$/, "is two to 26 capital letters")
      .default("ABCDEFGHIJ"),
  }),
  ({ choices }) =>
    (output, reference) => {
      const wanted = reference
        .trim()
        .replace(/^\(?([A-Za-z])\)?[.:]?$/, "$1")
        .toUpperCase();
      if (wanted.length !== 1 || !choices.includes(wanted)) {
        throw new MalformedReferenceError(`${JSON.stringify(reference.slice(0, 40))} is none of ${choices}`);
      }
      return chosen(output, choices) === wanted ? 1 : 0;
    },
);

function chosen(output: string, choices: string): string | undefined {
  const letter = `\\W{0,3}(?:text\\{)?\\W?([${choices}])\\b`;
  const boxed = new RegExp(`^${letter}`, "i").exec(extractBoxedAnswer(output, true));
  const named = output.matchAll(new RegExp(`\\banswer(?: is|:)\\s{0,3}${letter}`, "gi"));
  const opening = new RegExp(`^\\s*[(*]{0,3}([${choices}])(?:[).:,*]|\\s*$)`).exec(output);
  const bracketed = output.matchAll(new RegExp(`\\(([${choices}])\\)`, "g"));
  const alone = output.matchAll(new RegExp(`^\\W{0,3}([${choices}])\\W{0,3}$`, "gm"));
  const found = boxed ?? last(named) ?? opening ?? last(bracketed) ?? last(alone);
  return found?.[1]?.toUpperCase();
}

/** One at a time: a reply may be nothing but matches. */
function last(matches: Iterable<RegExpExecArray>): RegExpExecArray | undefined {
  let found: RegExpExecArray | undefined;
  for (const match of matches) found = match;
  return found;
}
