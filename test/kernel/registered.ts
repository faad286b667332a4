/** Environments for tests, registered with the Worker under test as a generated entry would register them. */
import * as z from "zod";
import type { RegisteredEnvironment } from "../../environments/registered.ts";
import {
  dataset,
  defineEnvironment,
  JudgeRubric,
  MultiTurnEnv,
  SingleTurnEnv,
  ToolEnv,
  tool,
} from "../../src/core/entry.ts";
import { heldEnvironments, registerEnvironment } from "../../src/kernel/environment/environments.ts";

const Task = z.object({ question: z.string() });
const rows = dataset(Task, [{ question: "Say anything." }]);

/** Uses a secret and leaks it: in its state, or in an error. */
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
  // Written for another platform: the types of this one have no such need.
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

/** What an environment declares that keeps data outside of its state. */
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

/** Files share a Worker, so an environment may be registered by an earlier file. */
export function registerOnce(environment: RegisteredEnvironment): void {
  if (heldEnvironments().some(({ id }) => id === environment.id)) return;
  registerEnvironment(environment);
}

/** Registers the environments above in this Worker, under these ids. */
export function registerTestEnvironments(): void {
  const all = { asking, keyed, judged, "needs-gpu": needsGpu, short, unforkable };
  for (const [id, loader] of Object.entries(all)) {
    const { args, needs, load } = loader;
    registerOnce({ id, version: "1.0.0", digest: `sha256:${id}`, args, needs, load });
  }
}
