/** Environments of the tests' own, registered with the Worker under test as a generated entry would register them. */
import * as z from "zod";
import {
  dataset,
  defineEnvironment,
  JudgeRubric,
  MultiTurnEnv,
  SingleTurnEnv,
} from "../../src/core/entry.ts";
import { registerEnvironment } from "../../src/runtime/environments.ts";

const Task = z.object({ question: z.string() });
const rows = dataset(Task, [{ question: "Say anything." }]);

/** Uses a secret, and tells it to whoever listens: in its state, or in what it throws. */
const keyed = defineEnvironment({
  args: z.strictObject({ fail: z.boolean().default(false) }),
  needs: ["secret:SEARCH_KEY"],
  build: ({ fail }) =>
    new MultiTurnEnv({
      dataset: rows,
      maxTurns: 1,
      envResponse: () => "Go on.",
      setupState: (_state, can) => {
        const key = can.secret("SEARCH_KEY");
        if (fail) throw new Error(`the service refused ${key}`);
        return { length: key.length, heard: `Bearer ${key}` };
      },
      rubric: { rewards: { length: ({ state }) => state.length } },
    }),
});

const needsSql = defineEnvironment({
  args: z.strictObject({}),
  needs: ["sql"],
  build: () => new SingleTurnEnv({ dataset: rows, rubric: { rewards: { one: () => 1 } } }),
});

const judged = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new SingleTurnEnv({
      dataset: rows,
      rubric: new JudgeRubric({ name: "kind", prompt: "{response}", choices: { yes: 1, no: 0 } }),
    }),
});

/** Cannot be built without an argument that has no default. */
const asking = defineEnvironment({
  args: z.strictObject({ word: z.string() }),
  build: ({ word }) => {
    if (word === "") throw new Error("the word is empty");
    const said = dataset(Task, [{ question: `Say ${word}.` }]);
    return new SingleTurnEnv({ dataset: said, rubric: { rewards: { one: () => 1 } } });
  },
});

/** Ids under which the environments above are known from now on, in this file's Worker. */
export function registerTestEnvironments(): void {
  const all = { asking, keyed, judged, "needs-sql": needsSql };
  for (const [id, loader] of Object.entries(all)) {
    const { args, needs, load } = loader;
    registerEnvironment({ id, version: "1.0.0", digest: `sha256:${id}`, args, needs, load });
  }
}
