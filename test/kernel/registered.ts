/** Environments of the tests' own, registered with the Worker under test as a generated entry would register them. */
import * as z from "zod";
import {
  dataset,
  defineEnvironment,
  JudgeRubric,
  MultiTurnEnv,
  SingleTurnEnv,
  ToolEnv,
  tool,
} from "../../src/core/entry.ts";
import {
  type HeldEnvironment,
  heldEnvironments,
  registerEnvironment,
} from "../../src/kernel/environment/environments.ts";

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

const needsGpu = defineEnvironment({
  args: z.strictObject({}),
  // Written for another platform: the types of this one know no such need.
  needs: JSON.parse('["gpu"]'),
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

const look = tool({
  name: "look",
  description: "Looks around.",
  parameters: z.object({}),
  run: () => "nothing",
});

/** Keeps four tokens of a turn. */
const short = defineEnvironment({
  args: z.strictObject({}),
  build: () => new SingleTurnEnv({ dataset: rows, maxSeqLen: 4, rubric: { rewards: { one: () => 1 } } }),
});

/** As one that keeps something outside of its state would say of itself. */
const unforkable = defineEnvironment({
  args: z.strictObject({}),
  forkable: false,
  build: () => new ToolEnv({ dataset: rows, tools: [look], rubric: { rewards: { one: () => 1 } } }),
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

/** Files share a Worker: what one has registered the next one finds. */
export function registerOnce(environment: HeldEnvironment): void {
  if (heldEnvironments().some(({ id }) => id === environment.id)) return;
  registerEnvironment(environment);
}

/** Ids under which the environments above are known from now on, in this Worker. */
export function registerTestEnvironments(): void {
  const all = { asking, keyed, judged, "needs-gpu": needsGpu, short, unforkable };
  for (const [id, loader] of Object.entries(all)) {
    const { args, needs, load } = loader;
    registerOnce({ id, version: "1.0.0", digest: `sha256:${id}`, args, needs, load });
  }
}
