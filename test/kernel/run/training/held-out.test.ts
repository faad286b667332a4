import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import * as z from "zod";
import { dataset, SingleTurnEnv } from "../../../../src/core/entry.ts";
import type { Dataset } from "../../../../src/core/environments/dataset.ts";
import { codeOf } from "../../../../src/core/protocol/in-process.ts";
import { Subrequests } from "../../../../src/kernel/kit/subrequests.ts";
import {
  HeldOut,
  keysHeldOut,
  rowsGiven,
  rowsOfRun,
  type TrainingRows,
  tasksToTrain,
} from "../../../../src/kernel/scoring/held-out.ts";
import { TRAINING } from "../../training-rows.ts";

const Task = z.object({ question: z.string() });
type Rows = Dataset<z.output<typeof Task>>;
const rubric = { rewards: { one: () => 1 } };
const named = (name: string, length: number) =>
  dataset(
    Task,
    Array.from({ length }, (_, at) => ({ question: `${name} ${at}` })),
  );
/** Endless rows with this many different tasks. */
const endless = (kinds: number) => dataset(Task, (index) => ({ question: `kind ${(index * 7) % kinds}` }));

function rowsOf(options: { dataset: Rows; evalDataset?: Rows }): TrainingRows {
  const { kind, length } = options.dataset;
  const spec = { dataset: { kind, key: null, length }, seed: 3, shuffle: false };
  const environment = codeOf(new SingleTurnEnv({ ...options, rubric }));
  return rowsOfRun(env, "org_held", { ...spec, training: TRAINING }, environment, new Subrequests());
}

async function played(rows: TrainingRows, holdout: number, wanted: readonly number[]) {
  const heldOut = await keysHeldOut(rows, holdout);
  const tasks = await tasksToTrain(rows, heldOut, holdout, wanted);
  return wanted.map((index) => {
    const task = tasks.get(index);
    return task === undefined || task instanceof Error ? task : task.row["question"];
  });
}
const first = (count: number) => Array.from({ length: count }, (_, at) => at);

test("without a holdout each row is its own task, from the training rows", async () => {
  const rows = rowsOf({ dataset: named("train", 3), evalDataset: named("eval", 3) });
  expect(await played(rows, 0, [0, 1, 2, 3])).toEqual(["train 0", "train 1", "train 2", "train 0"]);
});

test("rows of an eval are never trained on, in any order of requests, and others replace them evenly", async () => {
  const rows = rowsOf({ dataset: named("row", 40) });
  const tasks = await played(rows, 30, first(40));
  const kept = new Set(first(10).map((at) => `row ${at + 30}`));
  expect(tasks.every((task) => typeof task === "string" && kept.has(task))).toBe(true);
  expect(tasks.slice(30)).toEqual([...kept]);
  expect(new Set(tasks.slice(0, 30)).size).toBeGreaterThan(6);
  expect(await played(rows, 30, [17])).toEqual([tasks[17]]);
});

test("if one row of many is left every group finds it", async () => {
  const rows = rowsOf({ dataset: named("row", 300) });
  const tasks = await played(rows, 299, first(16));
  expect(new Set(tasks)).toEqual(new Set(["row 299"]));
});

test("the holdout applies to the task, wherever its row is", async () => {
  const rows = rowsOf({ dataset: named("row", 4), evalDataset: named("row", 2) });
  const [, , ...others] = await played(rows, 2, first(4));
  expect(others).toEqual(["row 2", "row 3"]);
  expect(await played(rows, 2, [0])).not.toEqual(["row 0"]);
});

test("endless rows begin after those of an eval, and skip tasks that occur again", async () => {
  expect(await played(rowsOf({ dataset: endless(1000) }), 16, first(4))).toEqual(
    first(4).map((at) => `kind ${((at + 16) * 7) % 1000}`),
  );
  const rows = rowsOf({ dataset: endless(50) });
  const held = new Set(first(40).map((at) => `kind ${(at * 7) % 50}`));
  const tasks = await played(rows, 40, first(60));
  expect(tasks.filter((task) => held.has(String(task)))).toEqual([]);
});

test("if every task is held out a row has none, and its error says so", async () => {
  const [task] = await played(rowsOf({ dataset: endless(8) }), 16, [5]);
  expect(task).toBeInstanceOf(HeldOut);
  const environment = codeOf(new SingleTurnEnv({ dataset: dataset(Task, "uploaded"), rubric }));
  const two = { kind: "uploaded", key: null, length: 2 } as const;
  const asked = { dataset: two, seed: 0, shuffle: false, training: TRAINING };
  const given = rowsGiven("org_held", asked, environment, [{ question: "a" }, { question: "b" }]);
  expect(await played(given, 1, [1])).toEqual(["b"]);
  expect(await played(given, 2, [1])).toEqual([expect.any(HeldOut)]);
});
