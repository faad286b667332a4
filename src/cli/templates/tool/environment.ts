/** A question that a tool helps with: what two items of a price list cost together. */
import { dataset, defineEnvironment, ToolEnv, textOf, tool } from "rollcall";
import * as z from "zod";

const PRICES = { bread: 3, cheese: 8, coffee: 6, honey: 11, tea: 4 };
const ITEMS = ["bread", "cheese", "coffee", "honey", "tea"] as const;

const Task = z.object({ question: z.string(), answer: z.string() });

const price = tool({
  name: "price",
  description: "The price of an item, in francs.",
  parameters: z.object({ item: z.enum(ITEMS) }),
  run: ({ item }) => PRICES[item],
});

export const loadEnvironment = defineEnvironment({
  // A strict object: a misspelt argument is an error.
  args: z.strictObject({ max_turns: z.int().positive().default(4) }),
  build: ({ max_turns }) =>
    new ToolEnv({
      dataset: dataset(Task, (_index, random) => {
        const draw = () => ITEMS[Math.floor(random() * ITEMS.length)] ?? "bread";
        const [one, other] = [draw(), draw()];
        return {
          question: `What do ${one} and ${other} cost together? Reply with the number alone.`,
          answer: String(PRICES[one] + PRICES[other]),
        };
      }),
      tools: [price],
      maxTurns: max_turns,
      rubric: {
        rewards: {
          right: ({ completion, answer }) => textOf(completion.at(-1)).trim() === answer,
        },
      },
    }),
});
