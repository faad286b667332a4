/** One question, one reply: how often a letter occurs in a word of random letters. */
import { dataset, defineEnvironment, extractBoxedAnswer, Parser, SingleTurnEnv, textOf } from "rollcall";
import * as z from "zod";

const Task = z.object({ question: z.string(), answer: z.string() });

export const loadEnvironment = defineEnvironment({
  // A strict object: a misspelt argument is an error.
  args: z.strictObject({ length: z.int().min(1).max(100).default(12) }),
  build: ({ length }) =>
    new SingleTurnEnv({
      dataset: dataset(Task, (_index, random) => {
        const word = Array.from({ length }, () => (random() < 0.3 ? "r" : "a")).join("");
        return {
          question: `How many times does "r" occur in "${word}"?`,
          answer: String(word.split("r").length - 1),
        };
      }),
      systemPrompt: "Put the answer in \\boxed{}.",
      parser: new Parser(extractBoxedAnswer),
      rubric: {
        rewards: {
          right: ({ parser, completion, answer }) => parser.parseAnswer(completion) === answer,
        },
        metrics: { length: ({ completion }) => textOf(completion.at(-1)).length },
      },
    }),
});
