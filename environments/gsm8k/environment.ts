/** GSM8K: grade-school word problems with one answer each, checked by the final number alone. */
import { dataset, defineEnvironment, Parser, SingleTurnEnv, textOf, withoutThoughts } from "rollcall";
import * as z from "zod";
import { extractAnswer, goldAnswer } from "./answer.ts";

const Task = z.object({ question: z.string(), answer: z.string() });

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({
    system_prompt: z.string().default("Reason step by step. Put the answer in \\boxed{}."),
  }),
  build: ({ system_prompt }) =>
    new SingleTurnEnv({
      dataset: dataset(Task, "uploaded"),
      systemPrompt: system_prompt,
      parser: new Parser((text) => extractAnswer(withoutThoughts(text))),
      rubric: {
        rewards: {
          correct_answer: ({ parser, completion, task }) => parser.parseAnswer(completion) === goldAnswer(task.answer),
        },
        metrics: {
          answer_length: ({ completion }) => textOf(completion.at(-1)).length,
        },
      },
    }),
});
