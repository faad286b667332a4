/** Questions whose answers can have many wordings: a judge decides whether a reply means the same as the reference. */
import { dataset, defineEnvironment, JudgeRubric, SingleTurnEnv, textOf } from "rollcall";
import * as z from "zod";

const Task = z.object({ question: z.string(), answer: z.string() });

const PROMPT = `Somebody was asked a question. Compare the reply with the reference answer.

Question: {question}
Reference answer: {answer}
Reply:
{response}

Say how the reply answers the question:
- "wrong": it contradicts the reference answer, answers something else, or does not answer;
- "partial": it holds a part of the reference answer and contradicts none of it;
- "right": it means what the reference answer means, in whatever words; more that is true does no harm.
Only the answer counts, not its style or its length. A reply that offers several answers is wrong.`;

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({
    system_prompt: z.string().default("Answer the question in one or two sentences."),
    passes: z.int().min(1).max(9).default(1).describe("verdicts asked for on each reply; the score is their mean"),
  }),
  build: ({ system_prompt, passes }) =>
    new SingleTurnEnv({
      dataset: dataset(Task, "uploaded"),
      systemPrompt: system_prompt,
      rubric: [
        new JudgeRubric({
          name: "correct",
          prompt: PROMPT,
          choices: { wrong: 0, partial: 0.5, right: 1 },
          passes,
        }),
        { metrics: { answer_length: ({ completion }) => textOf(completion.at(-1)).length } },
      ],
    }),
});
