/** Multiple-choice questions, asked and scored as MMLU-Pro or GPQA does: one question, one reply, one letter. */
import { dataset, defineEnvironment, SingleTurnEnv, scorers, spendWork, textOf, withoutThoughts } from "rollcall";
import * as z from "zod";
import { LETTERS, questionRow } from "./rows.ts";
import { STYLES } from "./styles.ts";

/** The options of the scorer for each number of letters. */
const CHOICES = Array.from(LETTERS, (_, at) => ({ choices: LETTERS.slice(0, at + 1) }));

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({
    style: z.enum(["mmlu_pro", "gpqa"]).default("mmlu_pro").describe("whose prompt, and whose rule for the letter"),
    shuffle_seed: z
      .int()
      .nullable()
      .optional()
      .describe("shuffles the options; null: they are not shuffled; default 0 for gpqa, null for mmlu_pro"),
    system_prompt: z.string().optional().describe("replaces that of the style"),
  }),
  build: ({ style, shuffle_seed, system_prompt }) => {
    const { systemPrompt, usualSeed, clean, prompt, referenceLetter } = STYLES[style];
    const rows = questionRow(clean, shuffle_seed === undefined ? usualSeed : shuffle_seed).transform((asked) => ({
      ...{ question: prompt(asked), answer: LETTERS[asked.right] ?? "", options: asked.options },
      category: asked.category,
    }));
    return new SingleTurnEnv({
      dataset: dataset(rows, "uploaded"),
      systemPrompt: system_prompt ?? systemPrompt,
      rubric: {
        rewards: {
          correct_answer: (args) => {
            const { completion, task } = args;
            const choices = CHOICES[task.options.length - 1];
            return scorers.choice.score(textOf(completion.at(-1)), task.answer, choices, args);
          },
        },
        metrics: {
          reference_match: (args) => {
            const { completion, task } = args;
            const reply = withoutThoughts(textOf(completion.at(-1)));
            spendWork(args, reply.length * task.options.length, "looking for the options in the reply");
            return referenceLetter(reply, task.options) === task.answer;
          },
        },
      },
    });
  },
});
