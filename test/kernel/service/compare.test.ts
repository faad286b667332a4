import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { RunComparison, TaskComparisonList } from "../../../src/contract/comparison.ts";
import type { RunView } from "../../../src/contract/run.ts";
import { dataset, defineEnvironment, SingleTurnEnv, textOf } from "../../../src/core/entry.ts";
import type { KeyRange } from "../../../src/kernel/messages/run-records.ts";
import { keyRanges } from "../../../src/kernel/run/report-sums.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { RIGHT } from "../rows.ts";
import { script } from "../script.ts";

/** The reward is the number in the reply. */
const valued = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new SingleTurnEnv({
      dataset: dataset(
        z.object({ question: z.string() }),
        [0, 1, 2, 3].map((at) => ({ question: `Question (${at})` })),
      ),
      rubric: { rewards: { value: ({ completion }) => Number(textOf(completion[0])) } },
    }),
});

let platform: TestApi;
beforeAll(async () => {
  const { args, needs, load } = valued;
  registerOnce({ id: "valued", version: "1.0.0", digest: "sha256:valued", args, needs, load });
  platform = await openPlatform();
});

const wrong = "\\boxed{5}";
const refused = { fault: { kind: "status", status: 404 } } as const;

interface Play {
  /** Numbers of the questions that are answered wrongly, or not at all. */
  readonly wrong?: readonly number[];
  readonly failed?: readonly number[];
  /** Numbers of the questions, in the order in which they are asked. */
  readonly asked?: readonly number[];
}

const TWELVE = Array.from({ length: 12 }, (_, at) => at);

function played({ wrong: no = [], failed = [], asked = TWELVE }: Play): Promise<RunView> {
  const replies = Object.fromEntries([
    ...no.map((at) => [`(${at})`, [wrong]]),
    ...failed.map((at) => [`(${at})`, [refused]]),
  ]);
  return platform.finish({
    environment: "gsm8k",
    dataset: asked.map((at) => ({ question: `Question (${at})`, answer: "so it is #### 4" })),
    model: script(RIGHT, replies),
    min_scored: 0,
  });
}

async function compare(run: RunView, baseline: RunView, query = ""): Promise<RunComparison> {
  const path = `/v1/runs/${run.id}/compare?baseline=${baseline.id}${query}`;
  const response = await platform.ask(path);
  expect(response.status).toBe(200);
  return RunComparison.parse(await response.json());
}

async function refusal(path: string) {
  const response = await platform.ask(path);
  const { error }: { error: object } = await response.json();
  return { status: response.status, ...error };
}

test("tasks are matched by their content; those scored on one side only are counted and left out", async () => {
  // In another order, one task less, and one that the baseline never had.
  const asked = [12, ...TWELVE.slice(0, 11).reverse()];
  const [run, baseline] = await Promise.all([
    played({ wrong: [1, 3, 4, 5], asked }),
    played({ wrong: [0, 1], failed: [2] }),
  ]);
  const comparison = await compare(run, baseline);
  expect(comparison).toMatchObject({
    object: "comparison",
    metric: "reward",
    run: {
      id: run.id,
      status: "completed",
      mean: expect.closeTo(0.6, 12),
      reward: { mean: 8 / 12, n_tasks: 12 },
    },
    baseline: {
      id: baseline.id,
      mean: expect.closeTo(0.8, 12),
      reward: { n_error: 1, n_tasks: 11 },
    },
    differs: ["model"],
    ...{ n_matched: 10, n_unmatched: 3, n_only_run: 2, n_only_baseline: 1 },
    ...{ wins: 1, losses: 3, ties: 6, mcnemar_p: 0.625, n_flipped: 4, next: null },
  });
  const { mean, se, df, t, p } = comparison.difference;
  // d = +1, −1, −1, −1 and six zeros.
  expect(mean).toBeCloseTo(-0.2, 12);
  expect(se).toBeCloseTo(Math.sqrt(3.6 / 9 / 10), 12);
  expect([df, t]).toEqual([9, expect.closeTo(-1, 12)]);
  expect(p).toBeCloseTo(0.343436, 6);
  // 10 tasks detect 2.80 standard errors; 2.80² times as many would detect one.
  expect(comparison.detectable).toEqual({
    ...{ alpha: 0.05, power: 0.8, effect: expect.closeTo(0.560317, 6), more_tasks: 69 },
  });
});

test("the tasks that flipped are listed with a rollout of each side, one page at a time", async () => {
  const [run, baseline] = await Promise.all([played({ wrong: [3, 4, 5, 6, 7] }), played({ wrong: [7, 8] })]);
  const whole = await compare(run, baseline);
  expect(whole.tasks.map(({ example_id }) => example_id).sort()).toEqual([3, 4, 5, 6, 8]);
  const keys = whole.tasks.map(({ task_key }) => task_key);
  expect(keys).toEqual(keys.toSorted());
  expect(whole.tasks.map(({ task_text }) => task_text)).toEqual(
    whole.tasks.map(({ example_id }) => `Question (${example_id})`),
  );
  const pages: RunComparison["tasks"] = [];
  for (let after = ""; ; ) {
    const page = await compare(run, baseline, `&limit=2${after}`);
    expect(page).toMatchObject({ n_flipped: 5, difference: whole.difference });
    pages.push(...page.tasks);
    if (page.next === null) break;
    after = `&after=${page.next}`;
  }
  expect(pages).toEqual(whole.tasks);
  for (const { rollout_id, baseline_rollout_id, ...flip } of pages) {
    const sides = [await platform.rollout(rollout_id), await platform.rollout(baseline_rollout_id)];
    expect(sides.map(({ task_key }) => task_key)).toEqual([flip.task_key, flip.task_key]);
    expect(sides.map(({ reward }) => reward)).toEqual([flip.run, flip.baseline]);
  }
});

test("tasks that differ, got worse or better, or all that match are listed on request", async () => {
  const [run, baseline] = await Promise.all([played({ wrong: [3, 4, 5, 6, 7] }), played({ wrong: [7, 8] })]);
  const listed = async (tasks: string) => {
    const { tasks: rows } = await compare(run, baseline, `&tasks=${tasks}`);
    return rows.map(({ example_id }) => example_id).sort((one, other) => one - other);
  };
  expect(await listed("different")).toEqual([3, 4, 5, 6, 8]);
  expect(await listed("worse")).toEqual([3, 4, 5, 6]);
  expect(await listed("better")).toEqual([8]);
  expect(await listed("all")).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
});

test("equal sums of the same parts are no difference, and a task passes from a mean of exactly one half on", async () => {
  const means = (given: readonly number[]) => {
    const replies = Object.fromEntries(given.map((mean, at) => [`(${at})`, [String(mean)]]));
    return platform.finish({ environment: "valued", model: script(["0"], replies) });
  };
  const [run, baseline] = await Promise.all([
    means([0.1 + 0.2, 0.3, 0.5, 0.5 - 1e-9]),
    means([0.3, 0.1 + 0.2, 0.4, 0.4]),
  ]);
  const listed = async (of: RunView, to: RunView, tasks: string) => {
    const rows = (await compare(of, to, `&tasks=${tasks}`)).tasks;
    return rows.map(({ task_text }) => task_text).sort();
  };
  const [half, below] = ["Question (2)", "Question (3)"];
  expect(await compare(run, baseline)).toMatchObject({ wins: 2, losses: 0, ties: 2, n_flipped: 1 });
  expect(await listed(run, baseline, "better")).toEqual([half, below]);
  expect(await listed(run, baseline, "worse")).toEqual([]);
  expect(await listed(baseline, run, "worse")).toEqual([half, below]);
  expect(await listed(baseline, run, "different")).toEqual([half, below]);
  expect(await listed(baseline, run, "flipped")).toEqual([half]);
});

test("a task counts once, by the mean of the attempts that count; equal rows are one task", async () => {
  const first = await played({ asked: [0, 0, 1], wrong: [1], failed: [0] });
  await platform.post(`/v1/runs/${first.id}/retry`, {});
  const baseline = await platform.ended(first.id);
  // The script fails them again: nothing of task 0 is scored, however many attempts it had.
  expect((await compare(await played({ asked: [0, 1] }), baseline)).n_matched).toBe(1);
  const alike = await played({ asked: [1, 1, 2] });
  const comparison = await compare(alike, baseline);
  expect(comparison).toMatchObject({
    n_matched: 1,
    n_only_run: 1,
    difference: { mean: 1, se: null },
  });
});

test("another score of both runs can be compared, and one that a run lacks is refused by name", async () => {
  const asked = [0, 1];
  const [run, baseline] = await Promise.all([played({ asked }), played({ asked, wrong: [0] })]);
  const right = await compare(run, baseline, "&metric=correct_answer");
  expect(right).toMatchObject({ metric: "correct_answer", difference: { mean: 0.5 } });
  // A wrong reply is as long as a right one.
  const length = await compare(run, baseline, "&metric=answer_length");
  expect(length).toMatchObject({ run: { mean: 9 }, difference: { mean: 0 }, ties: 2 });
  const path = `/v1/runs/${run.id}/compare?baseline=${baseline.id}&metric=nope`;
  expect(await refusal(path)).toMatchObject({
    status: 400,
    param: "metric",
    message: expect.stringContaining("it has: correct_answer"),
  });
});

test("runs without a common task, a missing baseline and the run itself are refused", async () => {
  const [run, other] = await Promise.all([played({ asked: [0] }), played({ asked: [1] })]);
  const path = `/v1/runs/${run.id}/compare`;
  expect(await refusal(`${path}?baseline=${other.id}`)).toMatchObject({
    status: 409,
    code: "conflict",
    message: expect.stringContaining("no task is scored in both runs"),
  });
  const unknown = { status: 404, param: "baseline" };
  expect(await refusal(`${path}?baseline=run_nope`)).toMatchObject(unknown);
  const stranger = await openPlatform();
  const theirs = await stranger.ask(`${path}?baseline=${other.id}`);
  expect(theirs.status).toBe(404);
  expect(await refusal(`${path}?baseline=${run.id}`)).toMatchObject({ status: 400 });
  expect(await refusal(path)).toMatchObject({ status: 400, param: "baseline" });
});

test("consecutive ranges of keys cover every task once, in order", async () => {
  const run = await played({});
  const within = (range: KeyRange) => platform.inRun(run.id, (object) => object.taskMeans(null, range));
  const all = await within({ from: "", to: null });
  expect(all).toHaveLength(12);
  for (const count of [0, 1, 2, 3, 7]) {
    const parts = await Promise.all(keyRanges(count).map(within));
    expect(parts.flat()).toEqual(all);
  }
  const [low] = keyRanges(2);
  expect(low).toEqual({ from: "", to: "8000" });
});

async function compareTasks(run: RunView, baselines: readonly RunView[], query = ""): Promise<TaskComparisonList> {
  const path = `/v1/runs/${run.id}/compare/tasks?baselines=${baselines.map(({ id }) => id).join(",")}${query}`;
  const response = await platform.ask(path);
  expect(response.status).toBe(200);
  return TaskComparisonList.parse(await response.json());
}

test("with several baselines a task is listed if it differs from at least one, with the mean of each run", async () => {
  const [run, first, second] = await Promise.all([
    played({ wrong: [3, 4, 5] }),
    played({ wrong: [4, 6], failed: [3] }),
    played({ wrong: [3, 4, 5, 8], asked: [...TWELVE, 12].reverse() }),
  ]);
  const listed = async (tasks: string) => {
    const { data } = await compareTasks(run, [first, second], `&tasks=${tasks}`);
    return data
      .map(({ example_id, run: own, baselines }) => [
        example_id,
        own.mean,
        ...baselines.map((one) => one?.mean ?? null),
      ])
      .sort(([one = 0], [other = 0]) => Number(one) - Number(other));
  };
  expect(await listed("flipped")).toEqual([
    [5, 0, 1, 0],
    [6, 1, 0, 1],
    [8, 1, 1, 0],
  ]);
  expect(await listed("worse")).toEqual([[5, 0, 1, 0]]);
  expect((await listed("better")).map(([at]) => at)).toEqual([6, 8]);
  const all = await listed("all");
  expect(all.map(([at]) => at)).toEqual(TWELVE);
  // The first baseline has no score of this task.
  expect(all[3]).toEqual([3, 0, null, 0]);
});

test("tasks against several baselines come in pages by key, with a text and a rollout of each run", async () => {
  const [run, first, second] = await Promise.all([played({ wrong: [3, 4, 5] }), played({}), played({ wrong: [0, 1] })]);
  const whole = await compareTasks(run, [first, second]);
  const keys = whole.data.map(({ task_key }) => task_key);
  expect([keys, keys.length, whole.has_more]).toEqual([keys.toSorted(), 5, false]);
  const pages: TaskComparisonList["data"] = [];
  for (let after = ""; ; ) {
    const page = await compareTasks(run, [first, second], `&limit=2${after}`);
    expect([page.first_id, page.last_id]).toEqual([page.data[0]?.task_key, page.data.at(-1)?.task_key]);
    pages.push(...page.data);
    if (!page.has_more) break;
    after = `&after=${page.last_id}`;
  }
  expect(pages).toEqual(whole.data);
  for (const { task_key, task_text, example_id, run: own, baselines } of pages) {
    expect(task_text).toBe(`Question (${example_id})`);
    for (const side of [own, ...baselines]) {
      expect(await platform.rollout(side?.rollout_id ?? "")).toMatchObject({ task_key, reward: side?.mean });
    }
  }
});

test("baselines that are missing, of another project, named twice, too many, or the run itself are refused by name", async () => {
  const [run, other] = await Promise.all([played({ asked: [0] }), played({ asked: [0] })]);
  const path = `/v1/runs/${run.id}/compare/tasks`;
  const stranger = await openPlatform();
  const asked = {
    environment: "gsm8k",
    dataset: [{ question: "Question (0)", answer: "#### 4" }],
    model: script(RIGHT),
  };
  const { id: theirs } = await stranger.finish(asked);
  const param = "baselines";
  for (const unknown of ["run_nope", theirs, "x".repeat(400)]) {
    expect(await refusal(`${path}?baselines=${other.id},${unknown}`)).toMatchObject({ status: 404, param });
  }
  const many = Array.from({ length: 8 }, (_, at) => `run_${at}`).join(",");
  for (const [given, message] of [
    [run.id, "names the run itself"],
    [`${other.id},${other.id}`, "names a run twice"],
    [`${other.id},`, "separated by single commas"],
    [many, "must be at most 7 runs"],
    ["x".repeat(1001), "1000 characters"],
  ]) {
    expect(await refusal(`${path}?baselines=${given}`)).toMatchObject({
      ...{ status: 400, param, message: expect.stringContaining(message ?? "") },
    });
  }
  expect(await refusal(path)).toMatchObject({ status: 400, param });
  expect(await refusal(`${path}?baselines=${other.id}&metric=nope`)).toMatchObject({ status: 400, param: "metric" });
});
