/** Write a word backwards. The words are random letters, so that none can be remembered. */
import { dataset, defineEnvironment, Parser, SingleTurnEnv, withoutThoughts } from "rollcall";
import * as z from "zod";

const Task = z.object({ question: z.string(), answer: z.string() });
const LETTERS = "abcdefghijklmnopqrstuvwxyz";

export const loadEnvironment = defineEnvironment({
  args: z
    .strictObject({
      min_length: z.int().min(2).max(40).default(3),
      max_length: z.int().min(2).max(40).default(6),
    })
    .refine(({ min_length, max_length }) => min_length <= max_length, {
      path: ["max_length"],
      error: "max_length must be at least min_length",
    }),
  build: ({ min_length, max_length }) =>
    new SingleTurnEnv({
      dataset: dataset(Task, (_index, random) => {
        const length = min_length + Math.floor(random() * (max_length - min_length + 1));
        const letters = Array.from({ length }, () => LETTERS.charAt(Math.floor(random() * 26)));
        return { question: `Reverse: ${letters.join("")}`, answer: letters.reverse().join("") };
      }),
      parser: new Parser((text) => withoutThoughts(text).trim()),
      rubric: {
        rewards: {
          exact: ({ parser, completion, answer }) => parser.parseAnswer(completion) === answer,
        },
        metrics: {
          lcs: ({ parser, completion, answer }) => likeness(parser.parseAnswer(completion) ?? "", answer),
        },
      },
    }),
});

/**
 * The similarity of two texts: twice the length of their longest common subsequence over the sum of their lengths. 1 if
 * they are equal, 0 if they have no letter in common.
 */
function likeness(a: string, b: string): number {
  return a === b ? 1 : (2 * commonSubsequence(a, b)) / (a.length + b.length);
}

/** Time is proportional to the product of the lengths; the second text, the answer, has at most 40 letters. */
function commonSubsequence(a: string, b: string): number {
  let above = new Array<number>(b.length + 1).fill(0);
  for (const letter of a) {
    const row = [0];
    for (let at = 1; at <= b.length; at += 1) {
      const longer = Math.max(above[at] ?? 0, row[at - 1] ?? 0);
      row.push(letter === b[at - 1] ? (above[at - 1] ?? 0) + 1 : longer);
    }
    above = row;
  }
  return above[b.length] ?? 0;
}
