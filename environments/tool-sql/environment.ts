/** Change a database: each rollout has its own, and is scored by its content at the end. */
import {
  dataset,
  defineEnvironment,
  EnvError,
  inject,
  JudgeRubric,
  type Sql,
  SqlWorkError,
  StatefulToolEnv,
  sqlStatements,
  ToolCallError,
  tool,
} from "rollcall";
import * as z from "zod";
import { shopTask } from "./shop.ts";

const Task = z.object({
  question: z.string(),
  /** The result of `check_sql` at the end, as JSON. */
  answer: z.string(),
  seed_sql: z.string(),
  /** It only reads: it is also run before the model plays. */
  check_sql: z.string(),
  /** Statements that solve the task, for validating the environment. */
  gold_sql: z.array(z.string()).readonly().default([]),
});

const query = tool({
  name: "query",
  description: "Run one SQL statement on your database. Gives its rows as JSON.",
  parameters: z.object({ sql: z.string().describe("one statement") }),
  hidden: { db: inject<Sql>() },
  run: async ({ sql, db }) => {
    if (sqlStatements(sql).length > 1) throw new ToolCallError("one statement a call");
    return JSON.stringify(await db.exec(sql));
  },
});

const explained = new JudgeRubric({
  name: "explained",
  weight: 0.3,
  judge: "default",
  prompt: "Question: {question}\nReply: {response}\nDoes the reply say truly what was done?",
  choices: { no: 0, yes: 1 },
});

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({
    rows: z.enum(["generated", "uploaded"]).default("generated"),
    max_turns: z.int().positive().default(8),
    max_statements: z.int().positive().default(20),
    explained: z.boolean().default(false),
  }),
  needs: ["sql"],
  build: ({ rows, max_turns, max_statements, explained: judged }) =>
    new StatefulToolEnv({
      dataset: rows === "uploaded" ? dataset(Task, "uploaded") : dataset(Task, (_index, random) => shopTask(random)),
      setupState: async ({ task }, { sql }) => {
        await seed(sql, task);
        return { final_value: "", statements: 0 };
      },
      openLive: (_state, { sql }) => ({ db: sql }),
      tools: [query],
      maxTurns: max_turns,
      updateToolArgs: (_name, args, _messages, state) => {
        state.statements += 1;
        return { ...args, db: state.live.db };
      },
      stops: {
        too_many_statements: { when: (state) => state.statements > max_statements, priority: 10 },
      },
      postRollout: async (state) => {
        state.final_value = await finalValue(state.live.db, state.task.check_sql);
      },
      rubric: [
        {
          rewards: { final_state: ({ state, task }) => state.final_value === task.answer },
          metrics: { statements: ({ state }) => state.statements },
        },
        ...(judged ? [explained] : []),
      ],
    }),
});

/** For `rollcall env validate`. */
export function goldPolicy(row: unknown) {
  const calls = Task.parse(row).gold_sql.map((sql) => ({ name: "query", arguments: { sql } }));
  return [{ tool_calls: calls }, "done"];
}

/**
 * If a row needs too much work, its rollout fails with the field's name. So the check is run on the row's own database
 * first; if it is too much work only later, the model caused that.
 */
async function seed(db: Sql, { seed_sql, check_sql }: z.output<typeof Task>): Promise<void> {
  try {
    await db.exec(seed_sql);
  } catch (thrown) {
    throw named("seed_sql", thrown);
  }
  try {
    await db.exec(check_sql);
  } catch (thrown) {
    if (thrown instanceof SqlWorkError) throw named("check_sql", thrown);
    // The check may read tables that the model has to create.
    if (!(thrown instanceof EnvError)) throw thrown;
  }
}

function named(field: string, thrown: unknown): unknown {
  if (!(thrown instanceof EnvError)) return thrown;
  return new EnvError(`${field}: ${thrown.message}`, { cause: thrown });
}

/** The model may leave a database that the check cannot read: that is a wrong state, and not a failure. */
async function finalValue(db: Sql, checkSql: string): Promise<string> {
  try {
    return JSON.stringify(await db.exec(checkSql));
  } catch (thrown) {
    if (thrown instanceof EnvError) return thrown.message;
    throw thrown;
  }
}
