/** Two-step arithmetic with two tools, and as many tasks as anyone asks for. */
import { dataset, defineEnvironment, ToolEnv, tool } from "rollcall";
import * as z from "zod";

const Task = z.object({ question: z.string(), answer: z.string() });
const Operands = z.object({
  a: z.number().describe("left operand"),
  b: z.number().describe("right operand"),
});

const add = tool({
  name: "add",
  description: "Add two numbers.",
  parameters: Operands,
  run: ({ a, b }) => a + b,
});
const multiply = tool({
  name: "multiply",
  description: "Multiply two numbers.",
  parameters: Operands,
  run: ({ a, b }) => a * b,
});

/** The question, two calls with their results, and the answer. */
const SHORTEST_COMPLETION = 5;

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({ max: z.int().min(2).default(99) }),
  build: ({ max }) =>
    new ToolEnv({
      dataset: dataset(Task, (_index, random) => {
        const [a, b] = [Math.floor(random() * max), Math.floor(random() * max)];
        return { question: `What is ${a} * ${b} + ${a}?`, answer: String(a * b + a) };
      }),
      tools: [add, multiply],
      maxTurns: 4,
      rubric: {
        rewards: {
          right: ({ completion, answer }) =>
            lastNumber(completion.at(-1)?.content ?? "") === Number(answer),
          brief: { weight: 0.1, fn: ({ completion }) => completion.length <= SHORTEST_COMPLETION },
        },
      },
    }),
});

/** The last number of a text: "12 * 3 + 12 is 48.0." gives 48, so naming every number wins nothing. */
function lastNumber(text: string): number {
  return Number(
    text
      .replaceAll(",", "")
      .match(/-?\d+(\.\d+)?/g)
      ?.at(-1),
  );
}
