/** An environment whose rewards ask a judge every kind of question. */
import { dataset, defineEnvironment, Rubric, SingleTurnEnv } from "rollcall";
import * as z from "zod";

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new SingleTurnEnv({
      dataset: dataset(z.object({ question: z.string() }), [{ question: "How much is 1 + 1?" }]),
      rubric: new Rubric({
        judges: ["default"],
        rewards: {
          text: async ({ judge }) => (await judge("Is it right?", { sampling: { temperature: 0 } })).length,
          label: async ({ judge }) => ((await judge("Is it good?", { labels: ["bad", "good"] })) === "good" ? 1 : 0),
          number: ({ judge }) => judge("How good is it?", { range: [0, 1], pass: 1 }),
          scores: async ({ judge }) => (await judge("Which is better?", { ids: ["a", "b"], range: [0, 1] }))["a"] ?? 0,
          cosine: ({ judge, completion }) => judge(["two", String(completion.at(-1)?.content)], { cosine: true }),
        },
      }),
    }),
});
