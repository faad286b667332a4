/** An environment in which some rows stop the process: for `poisoned.test.ts`. */
import { dataset, defineEnvironment, MultiTurnEnv } from "rollcall";
import * as z from "zod";

const HOW = ["setup", "crash", "fetched", "queried", "row", "score", "slept", "tools", "closed", "reply"] as const;

const Task = z.object({
  question: z.string(),
  answer: z.string(),
  poison: z.enum(HOW).nullable(),
});

class Listed<Task> extends MultiTurnEnv<Task> {
  override toolDefinitionsOf(state: Readonly<Record<string, unknown>>) {
    if (state["listed"] === true) computeForEver();
    return [];
  }
}

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({
    /** How examples stop the process, by their index. */
    poisons: z.record(z.string(), z.enum(HOW)),
    desk: z.string(),
  }),
  needs: ["fetch", "sql"],
  build: ({ poisons, desk }) =>
    new Listed({
      dataset: dataset(Task, (index) => {
        const poison = poisons[String(index)] ?? null;
        if (poison === "row") computeForEver();
        return { question: `${index}?`, answer: "said", poison };
      }),
      setupState: async ({ task: { poison } }, { fetch, sql }) => {
        if (poison === "setup") computeForEver();
        if (poison === "crash") takeTheProcessDown();
        await fetch(desk);
        if (poison === "fetched") computeForEver();
        if (poison === "slept") {
          await new Promise((wake) => setTimeout(wake, 20));
          computeForEver();
        }
        await sql.exec("create table t (x)");
        if (poison === "queried") computeForEver();
        return { listed: poison === "tools" };
      },
      maxTurns: 2,
      envResponse: (_messages, { task: { poison } }) => {
        if (poison === "reply") computeForEver();
        return [{ role: "user", content: "go on" }];
      },
      postRollout: ({ task: { poison } }) => {
        if (poison === "closed") computeForEver();
      },
      rubric: {
        rewards: {
          right: ({ task: { poison } }) => {
            if (poison === "score") computeForEver();
            return 1;
          },
        },
      },
    }),
});

function computeForEver(): void {
  for (let n = 0; n < Number.POSITIVE_INFINITY; n += 1) if (n < 0) return;
}

/** Allocates more than any heap holds, so that V8 aborts the process. */
function takeTheProcessDown(): void {
  const held: unknown[] = [];
  for (;;) held.push(new Array(1_000_000).fill(0).map(() => ({ held })));
}
