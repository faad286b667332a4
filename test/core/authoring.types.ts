/**
 * What the compiler must infer, and must refuse, for an author who writes no type annotation. Nothing here runs: the
 * type check of the whole project is the test, and an `@ts-expect-error` that no longer finds its error fails it.
 */
import {
  dataset,
  defineEnvironment,
  inject,
  JudgeRubric,
  type LiveState,
  type Messages,
  MultiTurnEnv,
  Rubric,
  SingleTurnEnv,
  type Sql,
  StatefulToolEnv,
  tool,
} from "rollcall";
import * as z from "zod";
import { loadEnvironment as loadCalculator } from "../../environments/calculator/environment.ts";
import { loadEnvironment as loadGsm8k } from "../../environments/gsm8k/environment.ts";

/** A database of the rollout's own, a hidden argument, a judge: everything inferred from `dataset` and the hooks. */
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

/** The porting path: methods need annotations, options of the same environment stay inferred. */
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

export const refused = [
  // @ts-expect-error a column that the task does not have
  new SingleTurnEnv({ dataset: rows, rubric: { rewards: { x: ({ task }) => task.nope } } }),

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
