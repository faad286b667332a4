/** A puzzle with state: from 1, reach a number by adding one and by doubling. */
import { dataset, defineEnvironment, inject, StatefulToolEnv, tool } from "rollcall";
import * as z from "zod";

const Task = z.object({ question: z.string(), target: z.int().min(1) });

/**
 * The puzzle's part of the rollout's state. It is a type, not an interface, because TypeScript accepts only a type as
 * plain JSON.
 */
type Counter = { value: number; steps: number };

const step = tool({
  name: "step",
  description: "Change the number. Answers with the new one.",
  parameters: z.object({ operation: z.enum(["add_one", "double"]) }),
  hidden: { counter: inject<Counter>() }, // provided by updateToolArgs; the model never sees it
  run: ({ operation, counter }) => {
    counter.value = operation === "double" ? counter.value * 2 : counter.value + 1;
    counter.steps += 1;
    return counter.value;
  },
});

export const loadEnvironment = defineEnvironment({
  // A strict object: a misspelt argument is an error.
  args: z.strictObject({ max: z.int().min(3).max(1000).default(30) }),
  build: ({ max }) =>
    // Type inference needs this order: dataset, setupState, openLive, then the rest.
    new StatefulToolEnv({
      dataset: dataset(Task, (_index, random) => {
        const target = 2 + Math.floor(random() * (max - 1));
        return {
          question: `The number is 1. Make it ${target}, then say that you are done.`,
          target,
        };
      }),
      setupState: () => ({ value: 1, steps: 0 }),
      tools: [step],
      updateToolArgs: (_name, args, _messages, state) => ({ ...args, counter: state }),
      maxTurns: 20,
      rubric: {
        rewards: { reached: ({ state, task }) => state.value === task.target },
        metrics: { steps: ({ state }) => state.steps },
      },
    }),
});

/** The fewest steps, for `rollcall env validate`: for a task without an answer it gives the right solution. */
export function goldPolicy(row: unknown) {
  const operations: ("add_one" | "double")[] = [];
  let { target } = Task.parse(row);
  while (target > 1) {
    const even = target % 2 === 0;
    operations.unshift(even ? "double" : "add_one");
    target = even ? target / 2 : target - 1;
  }
  const calls = operations.map((operation) => ({ name: "step", arguments: { operation } }));
  return [...calls.map((call) => ({ tool_calls: [call] })), "Done."];
}
