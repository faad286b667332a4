/** Competition mathematics: one question, one reply, whose answer is compared with the row's as mathematics. */
import { dataset, defineEnvironment, MathRubric, SingleTurnEnv, textOf } from "rollcall";
import * as z from "zod";

const Column = z.string().min(1);

/** A row with any columns; `question` and `answer` are read from the named ones. */
function rows(question: string, answer: string) {
  const columns = { [question]: z.string().min(1), [answer]: z.union([z.string(), z.number()]) };
  return z.looseObject(columns).transform((row) => ({
    ...row,
    question: String(row[question]),
    answer: String(row[answer]),
  }));
}

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({
    question_column: Column.default("question").describe("the column that holds the question"),
    answer_column: Column.default("answer").describe("its answer, or a solution that ends in it"),
    system_prompt: z
      .string()
      .default("Reason step by step. Put the final answer in \\boxed{}.")
      .describe("said before every question"),
    strict: z.boolean().default(false).describe("only what stands in \\boxed{} is an answer"),
    percent_is_ratio: z.boolean().default(false).describe("5% is 0.05"),
  }),
  build: ({ question_column, answer_column, system_prompt, strict, percent_is_ratio }) =>
    new SingleTurnEnv({
      dataset: dataset(rows(question_column, answer_column), "uploaded"),
      systemPrompt: system_prompt,
      rubric: [
        new MathRubric({ strict, percentIsRatio: percent_is_ratio }),
        { metrics: { answer_length: ({ completion }) => textOf(completion.at(-1)).length } },
      ],
    }),
});
