/** Environments whose rubrics a test can break and change: their score is the number that the model said. */
import * as z from "zod";
import type { Messages } from "../../src/contract/messages.ts";
import { dataset, defineEnvironment, MultiTurnEnv, SingleTurnEnv, textOf } from "../../src/core/entry.ts";
import { registerOnce } from "./registered.ts";

/** Questions whose answers cannot be scored at the moment. */
export const unscorable = new Set<string>();

const Task = z.object({ question: z.string() });
const none = z.strictObject({});

function said(completion: Messages): number | null {
  const text = textOf(completion.at(-1));
  return text === "nothing" ? null : Number(text);
}

function mark(question: string, completion: Messages): number | null {
  if (unscorable.has(question)) throw new Error("the scorer is down");
  return said(completion);
}

const marked = (times: number) =>
  defineEnvironment({
    args: none,
    build: () =>
      new SingleTurnEnv({
        dataset: dataset(Task, "uploaded"),
        rubric: {
          rewards: {
            mark: ({ task, completion }) => {
              const score = mark(task.question, completion);
              return score === null ? null : score * times;
            },
          },
        },
      }),
  });

/** How many of the next setups of `ranked` fail. */
export const setups = { toFail: 0 };

/**
 * The score: how much the number that the model said, times the rollout's random factor, exceeds the lowest of the
 * group.
 */
const ranked = defineEnvironment({
  args: none,
  build: () =>
    new MultiTurnEnv({
      dataset: dataset(Task, "uploaded"),
      setupState: (_state, can) => {
        if (setups.toFail > 0) {
          setups.toFail -= 1;
          throw new Error("this one does not begin");
        }
        return { luck: can.random() };
      },
      envResponse: () => "",
      maxTurns: 1,
      rubric: {
        groupRewards: {
          over_least: (group) => {
            const all = group.map(({ state, completion }) => (said(completion) ?? 0) * (state.luck ?? 1));
            return all.map((score) => score - Math.min(...all));
          },
        },
        groupMetrics: { members: (group) => group.map(() => group.length) },
      },
    }),
});

/** `doubled` gives twice the score of `marked`; `ranked` scores whole groups. */
export function registerMarking(): void {
  const all = { marked: marked(1), doubled: marked(2), ranked };
  for (const [id, { args, needs, load }] of Object.entries(all)) {
    registerOnce({ id, version: "1.0.0", digest: `sha256:${id}`, args, needs, load });
  }
}
