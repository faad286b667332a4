import { dataset, defineEnvironment, EnvGroup, MultiTurnEnv, SingleTurnEnv, ToolEnv, textOf, tool } from "rollcall";
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { canonicalJson } from "../../../src/contract/json.ts";
import type { AnyEnvironment } from "../../../src/core/environments/any-environment.ts";
import { buildTask, parseRow, rowAt } from "../../../src/core/rollout/task.ts";
import { scoreScoringGroup } from "../../../src/core/rubrics/score.ts";

const Sum = z.strictObject({ question: z.string(), answer: z.string() });
const math = new SingleTurnEnv({
  dataset: dataset(Sum, [
    { question: "1 + 1?", answer: "2" },
    { question: "1 + 2?", answer: "3" },
  ]),
  systemPrompt: "Add.",
  rubric: { rewards: { right: ({ completion, task }) => textOf(completion[0]) === task.answer } },
});
const Program = z.object({
  question: z.string(),
  info: z.object({ tests: z.array(z.string()) }),
});
const run = tool({
  name: "run",
  description: "Run a program.",
  parameters: z.object({}),
  run: () => "ok",
});
const code = new ToolEnv({
  dataset: dataset(Program, [{ question: "Write hello.", info: { tests: ["hello"] } }]),
  tools: [run],
  setupState: ({ task, info }) => ({ seen: canonicalJson([task.info.tests, info]) }),
  timeoutMs: 1000,
  rubric: {
    rewards: {
      ran: { weight: 0.5, fn: ({ info }) => canonicalJson(info) === '{"tests":["hello"]}' },
    },
  },
});
const both = new EnvGroup({ math, code });

function rowsOf(environment: AnyEnvironment, count = environment.dataset.length ?? 0) {
  const made = Array.from({ length: count }, (_, index) => rowAt(environment.dataset, index, 0));
  return made.map((row, index) => buildTask(environment, row, index));
}

const replies = (text: string) => ({ model: scripted([text]) });

test("R-eg-1: rows are numbered across the group, name their environment, and have only its metrics", async () => {
  const tasks = rowsOf(both);
  expect(tasks.map(({ example_id, info }) => [example_id, info])).toEqual([
    [0, { env_id: "math" }],
    [1, { env_id: "math" }],
    [2, { env_id: "code", tests: ["hello"] }],
  ]);
  expect(tasks[0]?.prompt[0]).toEqual({ role: "system", content: "Add." });
  expect(tasks[2]?.prompt).toEqual([{ role: "user", content: "Write hello." }]);
  const sum = await runRollout(both, { task: rowAt(both.dataset, 1, 0), ...replies("3") });
  expect(sum).toMatchObject({ reward: 1, metrics: { right: 1, num_turns: 1 } });
  expect(Object.keys(sum.metrics)).toEqual(["right", "num_turns"]);
  const program = await runRollout(both, { task: rowAt(both.dataset, 2, 0), ...replies("done") });
  expect(program.metrics).toEqual({ ran: 1, num_turns: 1, total_tool_calls: 0, run_calls: 0 });
  expect(program).toMatchObject({ reward: 0.5, stop_condition: "no_tools_called" });
  expect(program.trajectory.info).toEqual({ env_id: "code", tests: ["hello"] });
});

test("an environment plays a row of its group as it would alone: its task and info have no route", async () => {
  const report = await runRollout(both, { task: rowAt(both.dataset, 2, 0), ...replies("done") });
  expect(report.state).toEqual({ seen: '[["hello"],{"tests":["hello"]}]' });
  const seen: string[][] = [];
  await runRollout(both, {
    task: rowAt(both.dataset, 2, 0),
    model: ({ tools }) => {
      seen.push(tools.map((offered) => offered.function.name));
      return "done";
    },
  });
  expect(seen).toEqual([["run"]]);
});

test("R-eg-2: in nested groups each group adds to the route, and a rollout keeps the whole route", async () => {
  const solo = new SingleTurnEnv({ dataset: math.dataset, rubric: { rewards: { one: () => 1 } } });
  const nested = new EnvGroup({ outer: both, solo });
  expect(rowsOf(nested).map(({ info }) => (info as { env_id: unknown }).env_id)).toEqual([
    ["outer", "math"],
    ["outer", "math"],
    ["outer", "code"],
    "solo",
    "solo",
  ]);
  const report = await runRollout(nested, { task: rowAt(nested.dataset, 2, 0), ...replies("x") });
  expect(report).toMatchObject({ reward: 0.5, state: { seen: '[["hello"],{"tests":["hello"]}]' } });
  expect(report.trajectory.info).toEqual({ env_id: ["outer", "code"], tests: ["hello"] });
  expect(nested.players).toEqual([math, code, solo]);
});

test("R-eg-3: a row without a route belongs to the only environment or is refused, and an unknown name is refused", async () => {
  const row = { question: "2 + 2?", answer: "4" };
  const only = new EnvGroup({ env_0: math });
  expect(parseRow(only.dataset, row, 0)).toEqual({ ...row, info: { env_id: "env_0" } });
  const refusalOf = (given: object) => () => parseRow(both.dataset, given, 6);
  expect(refusalOf(row)).toThrow(/info.env_id is missing: use one of math, code/);
  const named = { ...row, info: { env_id: "chess" } };
  expect(refusalOf(named)).toThrow(/no environment chess: use one of math, code/);
  expect(refusalOf(named)).toThrow(expect.objectContaining({ path: "rows[6].info.env_id" }));
  expect(() => buildTask(both, row, 0)).toThrow(expect.objectContaining({ name: "RowError" }));
  const trajectories = await Promise.all(
    [0, 2].map(async (index) => {
      const task = rowAt(both.dataset, index, 0);
      return (await runRollout(both, { task, ...replies("2") })).trajectory;
    }),
  );
  for (const record of await scoreScoringGroup(both, trajectories)) {
    expect(record).toMatchObject({ reward: null, scores: [], unscored: "scorer" });
    expect(record.scoring_errors[0]?.error).toMatch(/rows of different environments/);
  }
  const renamed = new EnvGroup({ sums: math, code });
  const [gone] = await scoreScoringGroup(renamed, trajectories.slice(0, 1));
  expect(gone).toMatchObject({ reward: null, unscored: "scorer" });
  expect(gone?.scoring_errors[0]?.error).toContain("no environment math: use one of sums, code");
  expect(() => new EnvGroup({})).toThrow(/at least one/);
});

test("a row whose info cannot be parsed is refused with the field, and other rows keep their info", () => {
  const row = { question: "2 + 2?", answer: "4" };
  const only = new EnvGroup({ env_0: math });
  const refusalOf = (info: unknown) => () => parseRow(only.dataset, { ...row, info }, 6);
  const unread = { path: "rows[6].info", message: expect.stringMatching(/^info: info is text but not JSON/) };
  expect(refusalOf("plain text")).toThrow(expect.objectContaining(unread));
  for (const info of ["[1]", "5", [1], 5]) {
    expect(refusalOf(info)).toThrow(expect.objectContaining({ path: "rows[6].info" }));
  }
  const rounded = { path: "rows[6].info.id", message: expect.stringContaining("9007199254740993") };
  expect(refusalOf('{"id": 9007199254740993}')).toThrow(expect.objectContaining(rounded));
  for (const env_id of [5, true, { a: 1 }]) {
    expect(refusalOf({ env_id })).toThrow(/info.env_id must be a name or a list of names/);
  }
  expect(parseRow(only.dataset, { ...row, info: { env_id: null } }, 0)).toMatchObject({ info: { env_id: "env_0" } });
  const noted = z.object({ question: z.string(), info: z.string() });
  const member = new SingleTurnEnv({ dataset: dataset(noted, [{ question: "q", info: "plain text" }]), rubric: {} });
  expect(() => rowAt(new EnvGroup({ member, math }).dataset, 0, 0)).toThrow(/info is text but not JSON/);
});

test("R-eg-4: the group's own rubric gives 0 for the metrics of other environments, and 0 for a row of no member", async () => {
  const { rubric } = both;
  const sum = await runRollout(both, { task: rowAt(both.dataset, 0, 0), ...replies("2") });
  const [padded] = await scoreScoringGroup({ rubric }, [sum.trajectory]);
  const scores = Object.fromEntries((padded?.scores ?? []).map(({ name, score }) => [name, score]));
  const all = { right: 1, num_turns: 1, ran: 0, total_tool_calls: 0, run_calls: 0 };
  expect([padded?.reward, scores]).toEqual([1, all]);
  const stray = { ...sum.trajectory, info: { env_id: "chess" } };
  const [nobody] = await scoreScoringGroup({ rubric }, [stray]);
  expect(nobody?.reward).toBe(0);
  expect(nobody?.scores.map(({ score }) => score)).toEqual([0, 0, 0, 0, 0]);
});

test("group rewards of a member see its rows as they are alone, and other rows get 0", async () => {
  const ranked = new SingleTurnEnv({
    dataset: dataset(Sum, [{ question: "q", answer: "a" }]),
    rubric: {
      groupRewards: {
        place: (group) => group.map(({ task }, at) => (task.answer === "a" ? at : -1)),
      },
    },
  });
  const group = new EnvGroup({ ranked, math });
  expect(group.rubric.hasGroupFunctions).toBe(true);
  const task = rowAt(group.dataset, 0, 0);
  const { trajectory } = await runRollout(group, { task, ...replies("x") });
  for (const scorer of [group, { rubric: group.rubric }]) {
    const records = await scoreScoringGroup(scorer, [trajectory, trajectory]);
    expect(records.map(({ reward }) => reward)).toEqual([0, 1]);
  }
});

test("endless datasets alternate, and a finite one starts again at its end", () => {
  const endless = new SingleTurnEnv({
    dataset: dataset(Sum, (index, random) => ({ question: `q${index}`, answer: String(random()) })),
    rubric: {},
  });
  const group = new EnvGroup({ math, endless });
  expect(group.dataset).toMatchObject({ kind: "generated", length: null });
  expect(rowsOf(group, 6).map(({ task }) => task["question"])).toEqual([
    "1 + 1?",
    "q0",
    "1 + 2?",
    "q1",
    "1 + 1?",
    "q2",
  ]);
  expect(rowsOf(group, 6)).toEqual(rowsOf(group, 6));
});

test("if the rows of one dataset come with the run, all do, each parsed by its own schema", () => {
  const uploaded = new SingleTurnEnv({ dataset: dataset(Sum, "uploaded"), rubric: {} });
  const group = new EnvGroup({ uploaded, code });
  expect(group.dataset).toMatchObject({ kind: "uploaded", length: null });
  const sum = { question: "q", answer: "a", info: '{"env_id": "uploaded"}' };
  expect(parseRow(group.dataset, sum, 0)).toEqual({
    question: "q",
    answer: "a",
    info: { env_id: "uploaded" },
  });
  const program = { question: "q", info: { env_id: "code", tests: [1] } };
  expect(() => parseRow(group.dataset, program, 3)).toThrow(expect.objectContaining({ path: "rows[3].info.tests[0]" }));
});

test("a group has eval rows if a member has any; a member without eval rows contributes its rows", () => {
  const held = dataset(Sum, [{ question: "held out", answer: "1" }]);
  const evaluated = new SingleTurnEnv({ dataset: math.dataset, evalDataset: held, rubric: {} });
  expect(both.evalDataset).toBeNull();
  const group = new EnvGroup({ evaluated, code });
  expect(group.evalDataset?.length).toBe(2);
  expect(group.dataset.length).toBe(3);
});

test("a group must declare its members' needs, and is only forkable if all its members are", async () => {
  const secret = defineEnvironment({
    args: z.strictObject({}),
    needs: ["secret:WORD"],
    forkable: false,
    build: () =>
      new MultiTurnEnv({
        dataset: math.dataset,
        setupState: (_state, { secret }) => ({ word: secret("WORD") }),
        envResponse: () => "go on",
        maxTurns: 1,
        rubric: {},
      }),
  });
  const grouped = (needs: "secret:WORD"[]) =>
    defineEnvironment({
      args: z.strictObject({}),
      needs,
      build: async () => new EnvGroup({ secret: await secret(), math }),
    });
  await expect(grouped([])()).rejects.toThrow(/a member needs secret:WORD/);
  const group = await grouped(["secret:WORD"])();
  expect(group).toMatchObject({ needs: ["secret:WORD"], forkable: false });
  const capabilities = { secret: () => "mellon" };
  const task = rowAt(group.dataset, 0, 0);
  expect((await runRollout(group, { task, ...replies("x"), capabilities })).state).toEqual({
    word: "mellon",
  });
});

test("the time limit of a rollout is its own environment's", async () => {
  let at = 0;
  const task = rowAt(both.dataset, 2, 0);
  const report = await runRollout(both, {
    task,
    model: () => {
      at += 2000;
      return { tool_calls: [{ name: "run", arguments: {} }] };
    },
    capabilities: { now: () => at },
  });
  expect(report.stop_condition).toBe("timeout_reached");
});

test("a member has one name everywhere; in nested groups the names on its route", () => {
  const solo = new SingleTurnEnv({ dataset: math.dataset, rubric: { rewards: { one: () => 1 } } });
  const nested = new EnvGroup({ outer: both, solo });
  expect(nested.members).toEqual(["outer/math", "outer/code", "solo"]);
  const names = rowsOf(nested).map((row) => nested.route(row).member);
  expect(names).toEqual(["outer/math", "outer/math", "outer/code", "solo", "solo"]);
  expect([math.members, math.route({ task: {}, info: {} }).member]).toEqual([[], null]);
});

test("a group has a maximal number of members, with short and different names", () => {
  const many = (count: number) =>
    new EnvGroup(Object.fromEntries(Array.from({ length: count }, (_, at) => [`e${at}`, math])));
  expect(many(64).members).toHaveLength(64);
  expect(() => many(65)).toThrow("a group of 65 environments: at most 64");
  expect(() => new EnvGroup({ all: many(64), math })).toThrow(/65 environments/);
  expect(() => new EnvGroup({ outer: both, "outer/math": math })).toThrow("two environments are called outer/math");
  expect(() => new EnvGroup({ ["n".repeat(201)]: math })).toThrow(/over 200 characters/);
});

test("the best possible reward of a group is the one that all members declare", () => {
  const member = (maxReward?: number) =>
    new SingleTurnEnv({
      dataset: dataset(Sum, []),
      ...(maxReward !== undefined && { maxReward }),
      rubric: {},
    });
  const ofGroup = (...members: AnyEnvironment[]) =>
    new EnvGroup(Object.fromEntries(members.map((each, at) => [`m${at}`, each]))).maxReward;
  expect(ofGroup(member(2), member(2))).toBe(2);
  expect([ofGroup(member(2), member(1)), ofGroup(member(2), member()), ofGroup(member())]).toEqual([null, null, null]);
});
