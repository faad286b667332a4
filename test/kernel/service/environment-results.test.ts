/** The results of an environment: every run of the project counts, and nothing is pooled. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { EnvironmentResults } from "../../../src/contract/environment-results.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { RunReport } from "../../../src/contract/report.ts";
import type { RunCounts, RunStatus } from "../../../src/contract/run.ts";
import type { Scope } from "../../../src/contract/scope.ts";
import { databaseOf } from "../../../src/kernel/db/database.ts";
import { runsOfEnvironment } from "../../../src/kernel/db/past-runs.ts";
import { insertRun, type NewRun, updateRun } from "../../../src/kernel/db/runs.ts";
import { endpointRow, runRow } from "../http/run-rows.ts";
import { openPlatform, type TestApi } from "../platform.ts";

interface Ended {
  readonly model?: string;
  readonly args?: Record<string, string>;
  readonly version?: string;
  readonly status?: RunStatus;
  readonly mean?: number | null;
  readonly tasks?: number;
  readonly counts?: Partial<RunCounts>;
  readonly spec?: object;
  readonly row?: Partial<NewRun>;
}

let time = 1000;
function nextTime(): number {
  time += 1000;
  return time;
}

async function addRun(scope: Scope, given: Ended = {}): Promise<string> {
  const { model = "m", args = {}, version = "1.0.2", status = "completed", mean = 0.5, tasks = 4 } = given;
  const run = runRow(endpointRow(), { environment_version: version, created_at: nextTime(), ...given.row });
  const spec = { ...run.spec, model, environment_args: args, ...given.spec };
  await insertRun(databaseOf(env), scope, { ...run, spec }, null);
  const counts = { ...NONE, planned: 6, scored: tasks, ...given.counts };
  const reward = { mean, se: 0.1, ci95: [0.3, 0.7], wilson95: null, range: null, n_tasks: tasks, n_rollouts: tasks };
  const report = { reward: { ...reward, n_unscored: 0, n_error: 0, n_truncated: 0 } } as unknown as RunReport;
  await updateRun(databaseOf(env), scope, run.id, {
    status,
    counts,
    report,
    ...(status !== "running" && { finished_at: 5 }),
  });
  return run.id;
}

const NONE: RunCounts = {
  ...{ planned: 0, pending: 0, dispatched: 0, in_flight: 0, scored: 0, unscored: {}, failed: {}, cancelled: {} },
};

async function results({ ask }: TestApi, id = "gsm8k") {
  const reply = await ask(`/v1/environments/${encodeURIComponent(id)}/results`);
  expect(reply.status, await reply.clone().text()).toBe(200);
  return EnvironmentResults.parse(await reply.json());
}

test("evals of a model are one row, whose counts have everything that was not scored", async () => {
  const api = await openPlatform();
  const first = await addRun(api.scope, { mean: 0.25, tasks: 5, counts: { failed: { provider: 2, timeout: 1 } } });
  const second = await addRun(api.scope, {
    ...{ mean: 0.75, tasks: 3, status: "failed" },
    counts: { unscored: { judge: 2 }, cancelled: { user: 1 } },
  });
  const open = await addRun(api.scope, { status: "running", mean: 1, tasks: 6 });
  const { rows, runs, has_more } = await results(api);
  expect([rows.length, runs, has_more]).toEqual([1, 3, false]);
  expect(rows[0]).toMatchObject({
    ...{ model: "m", version: "1.0.2", evals: 3, unfinished: 1, environment_args: {}, dataset: null },
    rollouts: { planned: 18, scored: 14, failed: 3, unscored: 2, cancelled: 1 },
    // The row shows the eval with the most scored tasks, not the newest, the best or an unfinished one.
    measured: { id: first, reward: { mean: 0.25, ci95: [0.3, 0.7], n_tasks: 5 }, rollouts: { failed: 3, unscored: 0 } },
  });
  expect(rows[0]?.latest.map(({ id }) => id)).toEqual([open, second, first]);
});

test("models, versions and arguments have rows of their own, those without a score last", async () => {
  const api = await openPlatform();
  await addRun(api.scope, { model: "none", mean: null, tasks: 0, counts: { failed: { provider: 6 } } });
  await addRun(api.scope, { model: "low", mean: 0.1 });
  await addRun(api.scope, { model: "high", mean: 0.9 });
  await addRun(api.scope, { model: "low", mean: 0.2, args: { system_prompt: "be brief" } });
  await addRun(api.scope, { model: "low", mean: 0.3, version: "2.0.0" });
  const { rows } = await results(api);
  const seen = rows.map(({ model, version, environment_args, measured }) => [
    ...[model, version, Object.keys(environment_args ?? {}).length, measured?.reward.mean ?? null],
  ]);
  expect(seen).toEqual([
    ["high", "1.0.2", 0, 0.9],
    ["low", "2.0.0", 0, 0.3],
    ["low", "1.0.2", 1, 0.2],
    ["low", "1.0.2", 0, 0.1],
    ["none", "1.0.2", 0, null],
  ]);
  await addRun(api.scope, { model: "sent", spec: { dataset: { kind: "uploaded", key: null, length: 3 } } });
  await addRun(api.scope, { model: "sent", row: { dataset_id: "ds_1" } });
  const sent = (await results(api)).rows.filter(({ model }) => model === "sent");
  expect(sent.map(({ inline, dataset }) => [inline, dataset])).toEqual([
    [false, "ds_1"],
    [true, null],
  ]);
});

test("evals of other code, judges or weights are not put together", async () => {
  const api = await openPlatform();
  const [large, small] = ["large", "small"].map((model) => ({
    // An inline endpoint has a new id in each run.
    judges: { default: { endpoint_id: crypto.randomUUID(), model, sampling: {} } },
  }));
  const trained = { fleet: { id: "fl_1", weights_of: "run_1" } };
  const rebuilt = { environment: { id: "gsm8k", version: "1.0.2", digest: "sha256:01" } };
  for (const spec of [{}, large, small, trained, rebuilt]) {
    await addRun(api.scope, { spec: spec ?? {} });
    await addRun(api.scope, { spec: spec ?? {} });
  }
  const prices = { input_per_mtok_micros: 1, output_per_mtok_micros: 1 };
  await addRun(api.scope, {
    spec: { judges: { default: { endpoint_id: "ep_other", model: "large", sampling: {}, prices } } },
  });
  const { rows } = await results(api);
  expect(rows.map(({ digest, weights_of, judges, evals }) => [digest, weights_of, judges, evals])).toEqual([
    ["sha256:00", null, { default: { model: "large", sampling: {} } }, 3],
    ["sha256:01", null, {}, 2],
    ["sha256:00", "run_1", {}, 2],
    ["sha256:00", null, { default: { model: "small", sampling: {} } }, 2],
    ["sha256:00", null, {}, 2],
  ]);
});

test("the order in which a request names arguments makes no rows", async () => {
  const api = await openPlatform();
  await addRun(api.scope, { args: { a: "1", b: "2" } });
  await addRun(api.scope, { args: { b: "2", a: "1" } });
  expect((await results(api)).rows.map(({ evals, environment_args }) => [evals, environment_args])).toEqual([
    [2, { a: "1", b: "2" }],
  ]);
});

test("evals whose arguments or judges are too long to compare are not put together", async () => {
  const api = await openPlatform();
  const args = { prompt: "x".repeat(LIMITS.resultArgsCharacters) };
  const judges = { default: { endpoint_id: "ep_1", model: "x".repeat(LIMITS.resultArgsCharacters), sampling: {} } };
  for (const given of [{ args }, { args }, { spec: { judges } }, { spec: { judges } }]) await addRun(api.scope, given);
  const { rows } = await results(api);
  expect(rows.map((row) => [row.evals, row.environment_args, row.judges])).toEqual([
    [1, {}, null],
    [1, {}, null],
    [1, null, {}],
    [1, null, {}],
  ]);
});

test("trainings, forks and rescored runs are counted, but are in no row", async () => {
  const api = await openPlatform();
  await addRun(api.scope, { row: { kind: "training" } });
  await addRun(api.scope, { spec: { fork: { rollout_id: "ro_1", turn: 1 } } });
  await addRun(api.scope, { spec: { rescore: { run_id: "run_1" } } });
  expect(await results(api)).toMatchObject({ runs: 3, left_out: { training: 1, forked: 1, rescored: 1 }, rows: [] });
});

test("of more runs than the limit the newest count, and the reply says so", async () => {
  const api = await openPlatform();
  await addRun(api.scope, { model: "oldest" });
  for (let n = 0; n < LIMITS.resultRuns; n += 1) await insertRun(databaseOf(env), api.scope, newRun(), null);
  const { runs, has_more, rows } = await results(api);
  expect([runs, has_more, rows.map(({ model, evals }) => [model, evals])]).toEqual([
    ...[LIMITS.resultRuns, true, [["m", LIMITS.resultRuns]]],
  ]);
  expect(rows[0]?.latest.length).toBe(LIMITS.resultEvalsListed);
});

function newRun(): NewRun {
  const run = runRow(endpointRow(), { created_at: nextTime() });
  return { ...run, spec: { ...run.spec, model: "m" } };
}

test("results of another project are not shown, and a deleted run does not count", async () => {
  const [mine, theirs] = [await openPlatform(), await openPlatform()];
  await addRun(theirs.scope);
  await addRun(mine.scope, { row: { deleted_at: 5 } });
  expect(await results(mine)).toMatchObject({ runs: 0, rows: [] });
  expect(await results(theirs)).toMatchObject({ runs: 1 });
});

test("results stay when the environment is gone; a name without runs must be that of an environment", async () => {
  const api = await openPlatform();
  await addRun(api.scope, { row: { environment_id: "gone/away" } });
  expect((await results(api, "gone/away")).rows).toHaveLength(1);
  const errorOf = async (path: string) => {
    const reply = await api.ask(`/v1/environments/${path}`);
    const { error } = await reply.json<{ error: { param: string; message: string } }>();
    return [reply.status, error.param];
  };
  expect(await errorOf("nothing/here/results")).toEqual([404, null]);
  expect(await errorOf("nothing%2Fhere/results")).toEqual([404, "id"]);
  expect(await errorOf("gsm8k@1.0.2/results")).toEqual([400, "id"]);
});

test("the newest runs are found by an index, without a sort", async () => {
  const statements: [string, unknown[]][] = [];
  const recorded = (text: string) => {
    const bind = (...values: unknown[]) => {
      statements.push([text, values]);
      return env.DB.prepare(text).bind(...values);
    };
    return { bind };
  };
  const scope = { orgId: "org_1", projectId: "pj_1" };
  const database = databaseOf({ DB: { prepare: recorded } as unknown as D1Database });
  await runsOfEnvironment(database, scope, { id: "gsm8k", limit: 200 });
  expect(statements).toHaveLength(1);
  for (const [text, values] of statements) {
    const plan = await env.DB.prepare(`explain query plan ${text}`)
      .bind(...values)
      .all<{ detail: string }>();
    expect(plan.results.map(({ detail }) => detail)).toEqual([expect.stringContaining("INDEX runs_by_environment")]);
  }
});
