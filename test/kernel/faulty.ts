/**
 * An environment whose row says which of its hooks fails, and how. Its last cleanup handler leaves a mark in the state.
 */
import * as z from "zod";
import { LIMITS } from "../../src/contract/limits.ts";
import { dataset, defineEnvironment, inject, type Messages, StatefulToolEnv, tool } from "../../src/core/entry.ts";
import { registerOnce } from "./registered.ts";

const Task = z.object({ question: z.string(), hook: z.string(), way: z.string() });
type Task = z.infer<typeof Task>;
type Fields = { told: number; grown: string; swept: boolean };

/** The fault of the hook named `hook`; nothing if the row is about another hook. */
async function misbehave(hook: string, task: Task): Promise<void> {
  if (task.hook !== hook) return;
  if (task.way === "throws") throw new RangeError(`${hook} broke`);
  if (task.way === "exits") process.exit(1);
  if (task.way === "aborts") process.abort();
  if (task.way === "hangs") await Promise.withResolvers<never>().promise;
}

/** A value of a wrong type, as from an environment without types. */
function nonsense<T>(hook: string, task: Task, good: T): T {
  return task.hook === hook && task.way.startsWith("gives ")
    ? (JSON.parse(task.way.slice("gives ".length)) as T)
    : good;
}

const work = tool({
  name: "work",
  description: "Works.",
  parameters: z.object({}),
  hidden: { task: inject<Task>() },
  run: async ({ task }) => {
    await misbehave("tool", task);
    return "worked";
  },
});

class FaultyEnv extends StatefulToolEnv<Task, Fields> {
  override async envResponse(
    ...[messages, state]: Parameters<StatefulToolEnv<Task, Fields>["envResponse"]>
  ): Promise<Messages> {
    await misbehave("envResponse", state.task);
    if (state.task.way === "grows") state.grown = "x".repeat(LIMITS.stateBytes);
    return nonsense("envResponse", state.task, await super.envResponse(messages, state));
  }
}

const faulty = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new FaultyEnv({
      dataset: dataset(Task, "uploaded"),
      tools: [work],
      setupState: async ({ task }) => {
        await misbehave("setupState", task);
        return nonsense("setupState", task, { told: 0, grown: "", swept: false });
      },
      openLive: async ({ task }) => {
        await misbehave("openLive", task);
        return undefined;
      },
      closeLive: ({ task }) => misbehave("closeLive", task),
      updateToolArgs: (_name, args, _messages, { task }) => ({ ...args, task }),
      stops: {
        never: async ({ task }) => {
          await misbehave("stop", task);
          return false;
        },
      },
      postRollout: ({ task }) => misbehave("postRollout", task),
      cleanup: {
        first: { priority: 1, run: ({ task }) => misbehave("cleanup", task) },
        sweep: (state) => {
          state.swept = true;
        },
      },
      rubric: { rewards: { one: () => 1 } },
    }),
});

export function registerFaulty(): void {
  const { args, needs, load } = faulty;
  const digest = "sha256:faulty";
  registerOnce({ id: "faulty", version: "1.0.0", digest, args, needs, load });
}
