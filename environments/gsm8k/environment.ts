/** GSM8K: grade-school word problems with one answer each, checked by the final number alone. */
import { dataset, defineEnvironment, Parser, SingleTurnEnv, textOf, withoutThoughts } from "rollcall";
import * as z from "zod";
import { extractAnswer, goldAnswer } from "./answer.ts";
import { flexibleExtract, referenceGold, strictMatch } from "./reference-scoring.ts";

/** How the answer is found in a reply, and how that of the row is written then. */
const SCORING = {
  final_number: { find: (text: string) => extractAnswer(withoutThoughts(text)), gold: goldAnswer },
  strict_match: { find: (text: string) => strictMatch(withoutThoughts(text)), gold: referenceGold },
  flexible_extract: { find: (text: string) => flexibleExtract(withoutThoughts(text)), gold: referenceGold },
};

const Task = z.object({ question: z.string(), answer: z.string() });

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({
    system_prompt: z.string().default("Reason step by step. Put the answer in \\boxed{}."),
    scoring: z
      .enum(["final_number", "strict_match", "flexible_extract"])
      .default("final_number")
      .describe("how the answer is found: the last two as the lm-evaluation-harness does"),
  }),
  build: ({ system_prompt, scoring }) =>
    new SingleTurnEnv({
      dataset: dataset(Task, "uploaded"),
      systemPrompt: system_prompt,
      parser: new Parser(SCORING[scoring].find),
      rubric: {
        rewards: {
          correct_answer: ({ parser, completion, task }) =>
            parser.parseAnswer(completion) === SCORING[scoring].gold(task.answer),
        },
        metrics: {
          answer_length: ({ completion }) => textOf(completion.at(-1)).length,
        },
      },
    }),
});
