/**
 * What the compiler must infer, and must refuse, for an author without type annotations. Nothing here runs: the type
 * check of the project is the test, and an `@ts-expect-error` without an error fails it.
 */
import {
  dataset,
  defineEnvironment,
  EnvGroup,
  inject,
  JudgeRubric,
  type LiveState,
  type Messages,
  MultiTurnEnv,
  Rubric,
  SingleTurnEnv,
  type Sql,
  StatefulToolEnv,
  type StopOptions,
  textOf,
  tool,
} from "rollcall";
import * as z from "zod";
import { loadEnvironment as loadCalculator } from "../../environments/calculator/environment.ts";
import { loadEnvironment as loadGsm8k } from "../../environments/gsm8k/environment.ts";

/** The rollout's own database, a hidden argument, a judge: everything is inferred from `dataset` and the hooks. */
const SqlTask = z.object({
  question: z.string(),
  answer: z.string(),
  seed_sql: z.string(),
  check_sql: z.string(),
});
const query = tool({
  name: "query",
  description: "Run one SQL statement on your database.",
  parameters: z.object({ sql: z.string().describe("one statement") }),
  hidden: { db: inject<Sql>() },
  run: ({ sql, db }) => db.exec(sql),
});
export const loadToolSql = defineEnvironment({
  args: z.strictObject({ max_turns: z.int().positive().default(8) }),
  needs: ["sql"],
  build: ({ max_turns }) =>
    new StatefulToolEnv({
      dataset: dataset(SqlTask, "uploaded"),
      tools: [query],
      maxTurns: max_turns,
      setupState: async (state, { sql }) => {
        await sql.exec(state.task.seed_sql);
        return { final_value: "", statements: 0 };
      },
      openLive: (_state, { sql }) => ({ db: sql }),
      updateToolArgs: (_name, args, _messages, state) => {
        state.statements += 1;
        return { ...args, db: state.live.db };
      },
      stops: { too_many_statements: { when: (state) => state.statements > 20, priority: 10 } },
      postRollout: async (state) => {
        state.final_value = JSON.stringify(await state.live.db.exec(state.task.check_sql));
      },
      rubric: [
        {
          rewards: { final_state: ({ state, task }) => state.final_value === task.answer },
          metrics: { statements: ({ state }) => state.statements },
        },
        new JudgeRubric({
          name: "explained",
          weight: 0.3,
          judge: "default",
          prompt: "Question: {question}\nReply: {response}\nIs the reply supported?",
          choices: { unsupported: 0, supported: 1 },
        }),
      ],
    }),
});

export const calls = [
  () => loadGsm8k(),
  () => loadGsm8k({ system_prompt: "Answer." }),
  () => loadCalculator({ max: 12 }),
  () => loadToolSql({ max_turns: 3 }),
  // @ts-expect-error an argument of another type
  () => loadCalculator({ max: "12" }),
];

const Task = z.object({ question: z.string() });
type Task = z.infer<typeof Task>;
const rows = dataset(Task, "uploaded");

export const hooks = new MultiTurnEnv({
  dataset: rows,
  setupState: () => ({ n: 0 }),
  envResponse: (_messages, state) => {
    state.n += 1;
    return "go on";
  },
  stops: { three: (state) => state.n === 3, has_final_env_response: null },
  cleanup: { report: (state) => void state.n.toFixed() },
  rubric: { rewards: { r: ({ state }) => state.n } },
});

/** Columns of the row are arguments by name; class objects are those given to the rubric. */
export const named = new SingleTurnEnv({
  dataset: rows,
  rubric: [
    { rewards: { asked: ({ question, judge: _judge, can: _can }) => question.length } },
    new Rubric<Task, object, { lexicon: readonly string[] }>({
      objects: { lexicon: ["word"] },
      rewards: { known: ({ lexicon, task }) => lexicon.includes(task.question) },
    }),
  ],
});

/** For ported environments: methods need annotations, options of the same environment are still inferred. */
class Game extends MultiTurnEnv<Task, { guesses: number }> {
  override setupState() {
    return { guesses: 0 };
  }
  override envResponse(_messages: Messages, state: LiveState<Task, { guesses: number }>) {
    state.guesses += 1;
    return "again";
  }
}
export const game = new Game({
  dataset: rows,
  maxTurns: 4,
  stops: { done: (state) => state.guesses > 3 },
  rubric: { rewards: { won: ({ state }) => state.guesses < 3 } },
});

/** A prompt made of the task, sampling, a lazy dataset, a budget, added and removed entries. */
export const tuned = new MultiTurnEnv({
  dataset: dataset(Task, { length: 3, row: (index) => ({ question: `q${index}` }) }),
  evalDataset: dataset(Task, { rows: () => [{ question: "q" }] }),
  prompt: (task) => [{ role: "user", content: [{ type: "text", text: task.question }] }],
  sampling: { temperature: 0, extra_body: { min_tokens: 1 } },
  setupState: ({ task }) => ({ left: task.question.length }),
  envResponse: (messages) => textOf(messages.at(-1)),
  maxTotalCompletionTokens: 100,
  cleanup: { report: { run: (state) => void state.left.toFixed(), priority: 1 } },
  teardown: { close: async () => undefined },
  rubric: { rewards: { said: ({ completion }) => textOf(completion.at(-1)).includes("yes") } },
});

/** A subclass with entries of its own. */
class Guarded extends MultiTurnEnv<Task, { guesses: number }> {
  protected override stopEntries(): StopOptions<LiveState<Task, { guesses: number }>> {
    return { ...super.stopEntries(), tired: ({ guesses }) => guesses > 9, max_turns_reached: null };
  }
}
export const guarded = new Guarded({
  dataset: rows,
  setupState: () => ({ guesses: 0 }),
  envResponse: () => "again",
  stops: { tired: null },
  rubric: {},
});

/** A mixture: each member keeps its types, and the group has none of its own. */
export const loadMixture = defineEnvironment({
  args: z.strictObject({ max: z.int().default(9) }),
  needs: ["sql"],
  build: async ({ max }) => new EnvGroup({ hooks, sums: await loadCalculator({ max }), sql: await loadToolSql() }),
});

export const refused = [
  // @ts-expect-error a member that is no environment
  new EnvGroup({ rows }),

  // @ts-expect-error a prompt from a column that the task does not have
  new SingleTurnEnv({ dataset: rows, prompt: (task) => task.nope, rubric: {} }),

  // @ts-expect-error a sampling argument that nobody knows
  new SingleTurnEnv({ dataset: rows, sampling: { temprature: 1 }, rubric: {} }),

  // @ts-expect-error a row that is not what the schema reads
  dataset(Task, { length: 1, row: () => ({ query: "q" }) }),

  // @ts-expect-error a column that the task does not have
  new SingleTurnEnv({ dataset: rows, rubric: { rewards: { x: ({ task }) => task.nope } } }),

  // @ts-expect-error a class object that the rubric was not given
  new Rubric({ objects: { lexicon: "" }, rewards: { x: ({ dictionary }) => dictionary } }),

  tool({
    name: "q",
    description: "",
    parameters: z.object({ s: z.string() }),
    hidden: { db: inject<Sql>() },
    // @ts-expect-error a hidden argument that was not declared
    run: ({ s, zz }) => s + zz,
  }),

  new StatefulToolEnv({
    dataset: rows,
    tools: [],
    setupState: () => ({ a: 1 }),
    openLive: () => ({ db: 1 }),
    updateToolArgs: (_name, args) => args,
    // @ts-expect-error handles are closed when scoring runs
    rubric: { rewards: { x: ({ state }) => state.live.db } },
  }),

  new StatefulToolEnv({
    dataset: rows,
    tools: [],
    // @ts-expect-error a handle cannot be stored in the state
    setupState: (_state, { sql }) => ({ db: sql }),
    updateToolArgs: (_name, args) => args,
    rubric: {},
  }),

  new StatefulToolEnv({
    dataset: rows,
    tools: [],
    // @ts-expect-error `completion` is a field of the rollout
    setupState: () => ({ completion: "x" }),
    updateToolArgs: (_name, args) => args,
    rubric: {},
  }),

  new SingleTurnEnv({
    dataset: rows,
    // @ts-expect-error a nested `new Rubric` knows no task: use the literal, or `new Rubric<Task, State>(…)`
    rubric: new Rubric({ rewards: { x: ({ task }) => task.question.length } }),
  }),
];
