/** Arithmetic of one or two steps with three tools, and endless tasks. */
import { dataset, defineEnvironment, ToolEnv, textOf, tool, withoutThoughts } from "rollcall";
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
const subtract = tool({
  name: "subtract",
  description: "Subtract the second number from the first.",
  parameters: Operands,
  run: ({ a, b }) => a - b,
});
const multiply = tool({
  name: "multiply",
  description: "Multiply two numbers.",
  parameters: Operands,
  run: ({ a, b }) => a * b,
});

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({
    // Beyond this the results are no longer exact.
    max: z.int().min(2).max(1_000_000).default(99),
    steps: z.literal([1, 2]).default(2),
  }),
  build: ({ max, steps }) =>
    new ToolEnv({
      dataset: dataset(Task, (_index, random) => (steps === 1 ? oneStep(max, random) : twoSteps(max, random))),
      tools: [add, subtract, multiply],
      maxTurns: 4,
      maxReward: 1.1,
      rubric: {
        rewards: {
          right: ({ completion, answer }) => lastNumber(withoutThoughts(textOf(completion.at(-1)))) === Number(answer),
          // A call and its result for each step, then the answer.
          brief: { weight: 0.1, fn: ({ completion }) => completion.length <= 2 * steps + 1 },
        },
      },
    }),
});

/** Operands from 1 to `max`; a difference is never negative. */
function oneStep(max: number, random: () => number): z.infer<typeof Task> {
  const [one, other] = [1 + Math.floor(random() * max), 1 + Math.floor(random() * max)];
  const operation = Math.floor(random() * 3);
  if (operation === 0) return asked(`${one} + ${other}`, one + other);
  if (operation === 1) return asked(`${one} * ${other}`, one * other);
  const [larger, smaller] = [Math.max(one, other), Math.min(one, other)];
  return asked(`${larger} - ${smaller}`, larger - smaller);
}

/** Operands from 0 to `max` - 1. */
function twoSteps(max: number, random: () => number): z.infer<typeof Task> {
  const [a, b] = [Math.floor(random() * max), Math.floor(random() * max)];
  return asked(`${a} * ${b} + ${a}`, a * b + a);
}

function asked(expression: string, value: number): z.infer<typeof Task> {
  return { question: `What is ${expression}?`, answer: String(value) };
}

/** The last number of a text: "12 * 3 + 12 is 48.0." gives 48, so naming every number wins nothing. */
function lastNumber(text: string): number {
  return Number(
    text
      .replaceAll(",", "")
      .match(/-?\d+(\.\d+)?/g)
      ?.at(-1),
  );
}
