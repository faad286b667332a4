import {
  dataset,
  defineEnvironment,
  MultiTurnEnv,
  Rubric,
  SingleTurnEnv,
  StatefulToolEnv,
  ToolEnv,
  tool,
} from "rollcall";
import { expect, test } from "vitest";
import * as z from "zod";
import { loadEnvironment as calculator } from "../../../environments/calculator/environment.ts";
import { loadEnvironment as gridWalk, goldPolicy as walk } from "../../../environments/grid-walk/environment.ts";
import { loadEnvironment as guessNumber, goldPolicy as halve } from "../../../environments/guess-number/environment.ts";
import { loadEnvironment as reverseText } from "../../../environments/reverse-text/environment.ts";
import { UnfinishedError } from "../../../src/core/validation/plays.ts";
import { checksOf, named, rows, said, Task, validated } from "./validated.ts";

test.each([
  ["calculator", calculator, undefined, 1.1],
  ["grid-walk", gridWalk, walk, 1],
  ["guess-number", guessNumber, halve, 1],
  ["reverse-text", reverseText, undefined, 1],
])("%s has no fault, and its gold play gets the full score", async (_name, load, gold, full) => {
  const validation = await validated(load, gold === undefined ? {} : { gold });
  expect(validation.checks.filter(({ status }) => status === "error" || status === "warning")).toEqual([]);
  expect(validation).toMatchObject({ ok: true, examples: 5 });
  expect(validation.policies.gold).toEqual({ mean: expect.closeTo(full), n: 5 });
  expect(validation.policies.null.mean).toBeLessThan(0.2);
  expect(validation.policies.random.n).toBe(5);
});

test("the measures of a validation are those of its plays: of constant, echo and empty replies, too", async () => {
  const rubric = {
    rewards: {
      said,
      short: ({ completion }: Parameters<typeof said>[0]) => {
        if (completion.at(-1)?.content === "") throw new Error("nothing was said");
        return 0;
      },
    },
  };
  const echoed = dataset(Task, [
    { question: "Say yes.", answer: "yes" },
    { question: "no", answer: "no" },
  ]);
  const build = () => new SingleTurnEnv({ dataset: echoed, rubric });
  const found = await validated(defineEnvironment({ args: z.strictObject({}), build }));
  expect(found.policies).toMatchObject({
    gold: { mean: 1, n: 2 },
    null: { mean: null, n: 0 },
    constant: { mean: 0.5, n: 2 },
    echo: { mean: 0.5, n: 2 },
  });
  expect(found).toMatchObject({ rewards: { least: 0, most: 1 }, equal_rows: 0, deterministic: true, ok: false });
  expect(found.failed_functions).toEqual([
    { name: "short", count: 2, first: expect.stringContaining("nothing was said") },
  ]);
  const same = () => new SingleTurnEnv({ dataset: echoed, rubric: { rewards: { half: () => 0.5 } } });
  const equal = await validated(defineEnvironment({ args: z.strictObject({}), build: same }));
  expect(equal).toMatchObject({ rewards: { least: 0.5, most: 0.5 }, equal_rows: 1, failed_functions: [] });
});

test("a judgement is given to every reward function that asks for one, and an error of a function is reported", async () => {
  const rubric = new Rubric({
    judges: ["default"],
    rewards: {
      judged: ({ judge }) => judge("Is it good?", { range: [0, 1] }),
      broken: ({ state }) => {
        throw new Error(`no turn ${state.turn}`);
      },
    },
  });
  const checks = await checksOf(() => new SingleTurnEnv({ dataset: rows, rubric }));
  expect(checks["needs"]).toEqual(["ok", "needs the judge default"]);
  expect(checks["rewards"]).toEqual([
    "error",
    expect.stringMatching(/^row 0, gold play: broken: .*no turn 1 \(and 9 m/),
  ]);
});

test("a play with a limit of turns is truncated there, and scored with what it has", async () => {
  const build = () =>
    new MultiTurnEnv({
      dataset: rows,
      envResponse: () => "go on",
      rubric: { rewards: { turns: ({ state }) => state.turn } },
    });
  const load = defineEnvironment({ args: z.strictObject({}), build });
  const { checks, rewards } = await validated(load, { mostTurns: 3 });
  expect(named(checks)["rollouts"]).toEqual(["ok", "10 rollouts ended, and no hook failed"]);
  expect(rewards).toEqual({ least: 3, most: 3 });
});

test("if a call says that nothing more can be played, the validation has what was played before, and an error", async () => {
  const load = defineEnvironment({
    args: z.strictObject({}),
    build: () => new SingleTurnEnv({ dataset: rows, rubric: { rewards: { said } } }),
  });
  let scored = 0;
  const found = await validated(load, {
    across: (code) => ({
      ...code,
      score: (...given) => {
        scored += 1;
        if (scored > 6) throw new UnfinishedError("no more than 6 scores");
        return code.score(...given);
      },
    }),
  });
  expect(named(found.checks)).toMatchObject({
    reset: ["skipped", "the instances were not compared"],
    rollouts: ["ok", "2 rollouts ended, and no hook failed"],
    finished: ["error", "no more than 6 scores"],
  });
  expect(found).toMatchObject({
    ok: false,
    deterministic: null,
    policies: { gold: { n: 1 }, null: { n: 1 }, echo: { n: 0 } },
  });
});

test("a repeated validation of the same environment gives the same result", async () => {
  expect(await validated(gridWalk)).toEqual(await validated(gridWalk));
});

test("a constant reward is an error, unless it is 0 and there is no gold play", async () => {
  const constant = await checksOf(() => new SingleTurnEnv({ dataset: rows, rubric: { rewards: { same: () => 1 } } }));
  expect(constant["variety"]).toEqual([
    "error",
    "every play scores 1; the rubric must distinguish good rollouts from bad ones",
  ]);
  const hard = dataset(z.object({ question: z.string() }), [{ question: "?" }]);
  const unknown = await checksOf(() => new SingleTurnEnv({ dataset: hard, rubric: { rewards: { never: () => 0 } } }));
  expect(unknown["variety"]?.[0]).toBe("warning");
  expect(unknown["gold"]).toEqual(["unchecked", expect.stringContaining("export goldPolicy(task)")]);
});

test("a constant group reward is only a warning: here every rollout is alone", async () => {
  const checks = await checksOf(
    () =>
      new SingleTurnEnv({
        dataset: rows,
        rubric: { groupRewards: { shortest: (group) => group.map(() => 1) } },
      }),
  );
  expect(checks["variety"]).toEqual(["warning", expect.stringContaining("here each task has one rollout")]);
});

test("a row or a state that is random each time is not deterministic", async () => {
  let drawn = 0;
  const next = () => {
    drawn += 1;
    return drawn;
  };
  const moody = dataset(Task, () => ({ question: `${next()}?`, answer: "2" }));
  const row = await checksOf(() => new SingleTurnEnv({ dataset: moody, rubric: { rewards: { said } } }));
  expect(row["reset"]).toEqual(["error", expect.stringMatching(/^row 0: row\.question is "\d+\?" and then "\d+\?"/)]);
  const state = await checksOf(
    () =>
      new MultiTurnEnv({
        dataset: rows,
        setupState: () => ({ secret: next() }),
        envResponse: () => "go on",
        maxTurns: 2,
        rubric: { rewards: { said } },
      }),
  );
  expect(state["reset"]).toEqual(["error", expect.stringMatching(/^row 0: state\.secret is \d+ and then \d+/)]);
});

test("a row that depends on the date is found by making it again with a later date", async () => {
  let today = "Monday";
  const dated = dataset(Task, () => ({ question: today, answer: "2" }));
  const checks = await checksOf(() => new SingleTurnEnv({ dataset: dated, rubric: { rewards: { said } } }), {
    later: async (run) => {
      today = "Tuesday";
      return run().finally(() => {
        today = "Monday";
      });
    },
  });
  expect(checks["reset"]).toEqual(["error", expect.stringContaining('row.question is "Monday" and then "Tuesday"')]);
});

test("data kept outside of the state does not survive a restart", async () => {
  const checks = await checksOf(() => {
    let count = 0;
    return new MultiTurnEnv({
      dataset: rows,
      setupState: () => {
        count = 0;
        return { shown: 0 };
      },
      envResponse: (_messages, state) => {
        count += 1;
        state.shown = count;
        return "go on";
      },
      maxTurns: 4,
      rubric: { rewards: { said } },
    });
  });
  expect(checks["restarts"]).toEqual([
    "error",
    expect.stringContaining("row 0, gold play: state.shown is 3 and then 2"),
  ]);
  expect(checks["reset"]?.[0]).toBe("ok");
});

test("data for the rubric that a hook keeps outside of the state does not survive a restart", async () => {
  const checks = await checksOf(() => {
    const secrets = new Map<string, string>();
    return new MultiTurnEnv({
      dataset: rows,
      setupState: ({ task }) => {
        secrets.set(task.question, task.answer);
        return {};
      },
      maxTurns: 1,
      rubric: {
        rewards: {
          right: ({ completion, task }) => completion.at(-1)?.content === secrets.get(task.question),
        },
      },
    });
  });
  expect(checks["restarts"]).toEqual(["error", expect.stringContaining("reward is 1 and then 0")]);
});

test("randomness while the environment is built is not deterministic", async () => {
  let built = 0;
  const checks = await checksOf(() => {
    built += 1;
    const drawn = Array.from({ length: 3 - built }, () => ({ question: `${built}?`, answer: "2" }));
    return new SingleTurnEnv({ dataset: dataset(Task, drawn), rubric: { rewards: { said } } });
  });
  expect(checks["reset"]).toEqual([
    "error",
    expect.stringMatching(/^row 0: row\.question is "1\?" and then "2\?" \(and 1 more\)/),
  ]);
});

test("a play that differs every time is not compared with its restarts", async () => {
  let calls = 0;
  const count = tool({
    name: "count",
    description: "Count.",
    parameters: z.object({}),
    run: () => {
      calls += 1;
      return calls;
    },
  });
  const checks = await checksOf(() => new ToolEnv({ dataset: rows, tools: [count], rubric: { rewards: { said } } }));
  expect(checks["restarts"]).toEqual(["warning", expect.stringContaining("every play differs")]);
});

test("rows and states that are not JSON are named by their path", async () => {
  const dates = dataset(z.object({ question: z.string(), when: z.date() }), [{ question: "?", when: new Date(0) }]);
  const row = await checksOf(() => new SingleTurnEnv({ dataset: dates, rubric: { rewards: { r: () => 1 } } }));
  expect(row["rows"]).toEqual(["error", "rows[0].when: JSON cannot represent an instance of Date"]);
  expect(row["rollouts"]).toEqual(["skipped", "nothing was played"]);
  const handle: { open: number[] } = { open: [] };
  Reflect.set(handle.open, 0, () => 1);
  const state = await checksOf(
    () =>
      new MultiTurnEnv({
        dataset: rows,
        setupState: () => ({ handle }),
        envResponse: () => "go on",
        maxTurns: 2,
        rubric: { rewards: { said } },
      }),
  );
  expect(state["rollouts"]).toEqual(["error", expect.stringContaining("(state.handle.open[0] is a function)")]);
});

test("hooks that throw, rewards that are not finite, and endless rollouts are reported", async () => {
  const failing = await checksOf(
    () =>
      new MultiTurnEnv({
        dataset: rows,
        envResponse: () => {
          throw new Error("the board is full");
        },
        maxTurns: 2,
        rubric: { rewards: { said } },
      }),
  );
  expect(failing["rollouts"]).toEqual([
    "error",
    "row 0, gold play: EnvError: envResponse: the board is full (and 9 more)",
  ]);
  const infinite = await checksOf(
    () => new SingleTurnEnv({ dataset: rows, rubric: { rewards: { ratio: () => 1 / 0 } } }),
  );
  expect(infinite["rewards"]?.[0]).toBe("error");
  expect(infinite["rewards"]?.[1]).toContain("row 0, gold play: ratio: ");
  expect(infinite["variety"]).toEqual(["skipped", "no rollout has a reward"]);
  const endless = await checksOf(
    () =>
      new MultiTurnEnv({
        dataset: rows,
        envResponse: () => "go on",
        rubric: { rewards: { said } },
      }),
  );
  expect(endless["rollouts"]?.[1]).toContain("no end after 100 model calls; set maxTurns or add a stop");
});

test("a tool without description is a warning, and random play calls it with valid arguments", async () => {
  const seen: unknown[] = [];
  const step = tool({
    name: "step",
    description: " ",
    parameters: z.object({
      way: z.enum(["up", "down"]),
      far: z.int().min(3).max(4),
      note: z.string().optional(),
    }),
    run: (args) => {
      seen.push(args);
      return "";
    },
  });
  const checks = await checksOf(
    () =>
      new StatefulToolEnv({
        dataset: rows,
        setupState: () => ({}),
        tools: [step],
        updateToolArgs: (_name, args) => args,
        rubric: { rewards: { said } },
      }),
  );
  expect(checks["tools"]).toEqual(["warning", "step has no description; the model needs it to use the tool"]);
  const Args = z.object({
    way: z.enum(["up", "down"]),
    far: z.int().min(3).max(4),
    note: z.string().optional(),
  });
  expect(seen.length).toBeGreaterThan(4);
  for (const args of seen) expect(Args.safeParse(args).success).toBe(true);
});

test("needs are listed, and nothing is played while a need is not met", async () => {
  const build = () => new SingleTurnEnv({ dataset: rows, rubric: { rewards: { said } } });
  const needy = defineEnvironment({ args: z.strictObject({}), needs: ["sql"], build });
  const { checks, ok, examples } = await validated(needy, { unmet: ["sql is not met"] });
  expect(named(checks)).toMatchObject({
    needs: ["error", "sql is not met"],
    rows: ["ok", "2 fit the schema and are JSON"],
    gold: ["skipped", "nothing was played"],
  });
  expect([ok, examples]).toEqual([false, 0]);
  const met = await validated(defineEnvironment({ args: z.strictObject({}), needs: ["fetch"], build }));
  expect(named(met.checks)["needs"]).toEqual(["ok", "needs fetch"]);
});

test("uploaded rows are parsed as in a run", async () => {
  const uploaded = [{ question: "1 + 1?", answer: "2" }, { question: 7 }];
  const checks = await checksOf(
    () => new SingleTurnEnv({ dataset: dataset(Task, "uploaded"), rubric: { rewards: { said } } }),
    { uploaded },
  );
  expect(checks["rows"]?.[1]).toContain("rows[1].question: ");
  expect(checks["gold"]).toEqual(["ok", "every gold play scores 1 or more"]);
});

test("a reward above the declared best one is an error, and a gold play need not score more than it", async () => {
  const declared = (maxReward: number) => () =>
    new SingleTurnEnv({ dataset: rows, maxReward, rubric: { rewards: { half: { weight: 0.5, fn: said } } } });
  const right = await checksOf(declared(0.5));
  expect(right).toMatchObject({
    gold: ["ok", "every gold play scores 0.5 or more"],
    maximum: ["ok", "no reward is above 0.5"],
  });
  const low = await checksOf(declared(0.4));
  expect(low["maximum"]).toEqual(["error", "row 0, gold play: the reward is 0.5, above maxReward, 0.4 (and 2 more)"]);
  await expect(checksOf(declared(Number.NaN))).rejects.toThrow("maxReward is NaN: must be a finite number");
});
