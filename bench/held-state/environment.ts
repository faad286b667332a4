/** The conversation of `calculator` (../workload.ts), with a state of a chosen size that each tool call changes. */
import { dataset, defineEnvironment, inject, StatefulToolEnv, tool } from "rollcall";
import * as z from "zod";

const Task = z.object({ question: z.string(), answer: z.string() });
type Held = { calls: number; text: string };

const add = tool({
  name: "add",
  description: "Add two numbers.",
  parameters: z.object({ a: z.number(), b: z.number() }),
  hidden: { held: inject<Held>() },
  run: ({ a, b, held }) => {
    held.calls += 1;
    return a + b;
  },
});

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({ state_bytes: z.int().min(0) }),
  build: ({ state_bytes }) =>
    new StatefulToolEnv({
      dataset: dataset(Task, () => ({ question: "What is 12 * 31 + 12?", answer: "48" })),
      setupState: () => ({ calls: 0, text: "x".repeat(state_bytes) }),
      tools: [add],
      maxTurns: 4,
      updateToolArgs: (_name, args, _messages, state) => ({ ...args, held: state }),
      rubric: { rewards: { calls: ({ state }) => state.calls } },
    }),
});
