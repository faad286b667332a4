/** Three ways to play, each a little within the model's skill: one answer, several turns, tools. */
import {
  dataset,
  defineEnvironment,
  type Messages,
  MultiTurnEnv,
  SingleTurnEnv,
  ToolEnv,
  textOf,
  tool,
} from "rollcall";
import * as z from "zod";

const Task = z.object({ question: z.string(), answer: z.string() });
const Operands = z.object({ a: z.number(), b: z.number() });

const tools = [
  tool({
    name: "add",
    description: "add two numbers",
    parameters: Operands,
    run: ({ a, b }) => a + b,
  }),
  tool({
    name: "multiply",
    description: "multiply two numbers",
    parameters: Operands,
    run: ({ a, b }) => a * b,
  }),
];

const counting = dataset(Task, (_index, random) => {
  const from = Math.floor(random() * 90);
  return { question: `Count on from ${from}.`, answer: String(from + 1) };
});
const sums = dataset(Task, (_index, random) => {
  const [a, b] = [Math.floor(random() * 90), Math.floor(random() * 90)];
  return { question: `What is ${a} and ${b}?`, answer: String(a + b) };
});

/** Seldom the same for two replies, so that nearly every group has something to train on. */
const rubric = {
  rewards: {
    digits: ({ completion }: { readonly completion: Messages }) => {
      const said = completion.filter(({ role }) => role === "assistant");
      const text = said.map((message) => textOf(message) + JSON.stringify(message)).join("");
      return text.replace(/\D/g, "").length / (text.length + 1);
    },
  },
};

const plays = {
  once: () => new SingleTurnEnv({ dataset: counting, rubric }),
  turns: () =>
    new MultiTurnEnv({
      dataset: counting,
      maxTurns: 3,
      envResponse: () => [{ role: "user", content: "Count on from 7." }],
      rubric,
    }),
  tools: () => new ToolEnv({ dataset: sums, tools, maxTurns: 4, rubric }),
};

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({ play: z.enum(["once", "turns", "tools"]) }),
  build: ({ play }) => plays[play](),
});
