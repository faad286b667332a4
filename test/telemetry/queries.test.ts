/** Counts of the deployment: SQL triggers store those of ended runs; those of unfinished runs come from their rows. */
import { env } from "cloudflare:workers";
import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { beforeEach, expect, test } from "vitest";
import type { RunCounts, RunStatus } from "../../src/contract/run.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { insertRun, type NewRun, updateRun } from "../../src/kernel/db/runs.ts";
import { runs } from "../../src/kernel/db/schema.ts";
import { countUnfinishedRuns, listEndpointsInUse, readTotals } from "../../src/telemetry/queries.ts";
import { admit } from "../accounts/admit.ts";
import { endpointRow, runRow } from "../kernel/http/run-rows.ts";

const scope = { orgId: `org_${crypto.randomUUID()}`, projectId: `pj_${crypto.randomUUID()}` };
await admit(scope);

/** Runs of other files may end at any moment, so these have unique statuses and reasons. */
let mark: string;
let completed: RunStatus;
let some: RunCounts;
beforeEach(() => {
  mark = crypto.randomUUID();
  completed = `completed-${mark}` as RunStatus;
  some = { ...NONE, unscored: { [mark]: 1 }, failed: { [mark]: 2 }, cancelled: { [mark]: 4 } };
});

const NONE: RunCounts = {
  ...{ planned: 9, pending: 2, dispatched: 7, in_flight: 1, scored: 0 },
  ...{ unscored: {}, failed: {}, cancelled: {} },
};

async function begun(changes: Partial<NewRun> = {}): Promise<string> {
  const row = runRow(endpointRow(), { id: `run_${crypto.randomUUID()}`, ...changes });
  expect(await insertRun(databaseOf(env), scope, row, null)).toBe("inserted");
  return row.id;
}

async function counted(): Promise<Record<string, number>> {
  const read = await readTotals(databaseOf(env));
  const own = read.filter(({ name, n }) => n > 0 && name.endsWith(mark));
  return Object.fromEntries(own.map(({ kind, n }) => [kind, n]));
}

const SUMS = { unscored: 1, failed: 2, cancelled: 4 };

test("the sum is the same before a run's end, after it, and after the run is deleted", async () => {
  const id = await begun();
  await updateRun(databaseOf(env), scope, id, { status: "running", counts: some });
  expect(await counted()).toEqual(SUMS);
  await updateRun(databaseOf(env), scope, id, { status: completed, counts: some, finished_at: 5 });
  const ended = { ...SUMS, runs: 1 };
  expect(await counted()).toEqual(ended);
  await drizzle(env.DB).delete(runs).where(eq(runs.id, id));
  expect(await counted()).toEqual(ended);
});

test("writing a row again changes nothing, and corrected rollouts count with their current outcome", async () => {
  const id = await begun();
  const last = { status: completed, counts: some, finished_at: 5, dead_letters: 0 };
  for (let time = 0; time < 3; time += 1) await updateRun(databaseOf(env), scope, id, last);
  expect(await counted()).toEqual({ ...SUMS, runs: 1 });
  await updateRun(databaseOf(env), scope, id, {
    ...last,
    status: "failed",
    counts: { ...some, failed: { [mark]: 5 } },
  });
  expect(await counted()).toEqual({ ...SUMS, failed: 5, runs: 1 });
});

test("a retry that reopens an ended run subtracts nothing, and its next end is counted too", async () => {
  const id = await begun();
  await updateRun(databaseOf(env), scope, id, { status: completed, counts: some, finished_at: 5 });
  await updateRun(databaseOf(env), scope, id, { status: "running", counts: some, finished_at: null });
  expect(await counted()).toEqual({ ...SUMS, runs: 1 });
  await updateRun(databaseOf(env), scope, id, {
    status: completed,
    counts: { ...some, failed: { [mark]: 3 } },
    finished_at: 9,
  });
  expect(await counted()).toEqual({ ...SUMS, failed: 3, runs: 2 });
});

test("a run that is deleted before its end counts as cancelled, and its ended rollouts are counted", async () => {
  const ended = async (status: string) =>
    (await readTotals(databaseOf(env))).find(({ kind, name }) => kind === "runs" && name === status)?.n ?? 0;
  const before = await ended("cancelled");
  const id = await begun();
  await updateRun(databaseOf(env), scope, id, { status: "running", counts: some });
  await drizzle(env.DB).delete(runs).where(eq(runs.id, id));
  expect(await counted()).toEqual(SUMS);
  expect(await ended("cancelled")).toBeGreaterThan(before);
});

test("unfinished runs are counted by status, with their remaining rollouts", async () => {
  const going = `running-${mark}` as RunStatus;
  for (const finished_at of [null, null, 5]) {
    await updateRun(databaseOf(env), scope, await begun(), { status: going, counts: NONE, finished_at });
  }
  const rows = await countUnfinishedRuns(databaseOf(env));
  expect(rows.filter(({ status }) => status === going)).toEqual([{ status: going, runs: 2, pending: 4, in_flight: 2 }]);
});

test("endpoints in use are those of policies and judges, busiest first, including those used recently", async () => {
  const judged = runRow(endpointRow({ id: `policy-${mark}` }));
  const judges = { grader: { ...judged.spec.judges?.["grader"], endpoint_id: `judge-${mark}`, model: "m" } };
  const spec = { ...judged.spec, judges } as NewRun["spec"];
  await begun({ endpoint_id: `policy-${mark}`, spec });
  await begun({ endpoint_id: `policy-${mark}` });
  const old = await begun({ endpoint_id: `old-${mark}` });
  const late = await begun({ endpoint_id: `late-${mark}` });
  await updateRun(databaseOf(env), scope, old, { status: "completed", finished_at: 10 });
  await updateRun(databaseOf(env), scope, late, { status: "completed", finished_at: 1000 });
  const listed = await listEndpointsInUse(databaseOf(env), { since: 500, limit: 100_000 });
  const own = listed.filter(({ endpoint_id }) => endpoint_id.endsWith(mark));
  expect(own.map(({ endpoint_id, of }) => [endpoint_id.split("-")[0], of])).toEqual([
    ["policy", listed.length],
    ["judge", listed.length],
    ["late", listed.length],
  ]);
  expect(own[0]?.scope).toEqual(scope);
  expect(await listEndpointsInUse(databaseOf(env), { since: 500, limit: 1 })).toHaveLength(1);
});

test("no statement reads runs that ended long ago", async () => {
  const plans: string[] = [];
  const DB = new Proxy(env.DB, {
    get: (target, name) =>
      name !== "prepare"
        ? Reflect.get(target, name)
        : (query: string) => {
            plans.push(query);
            return target.prepare(query);
          },
  });
  const noting = databaseOf({ DB });
  await countUnfinishedRuns(noting);
  await readTotals(noting);
  await listEndpointsInUse(noting, { since: 1, limit: 1 });
  expect(plans).toHaveLength(3);
  for (const query of plans) {
    const bound = Array.from(query.matchAll(/\?/g), () => 1);
    const { results } = await env.DB.prepare(`explain query plan ${query}`)
      .bind(...bound)
      .all<{ detail: string }>();
    const steps = results.map(({ detail }) => detail).filter((detail) => /\bruns\b/.test(detail));
    expect(steps.length).toBeGreaterThan(0);
    for (const step of steps) expect(step).toContain("USING INDEX runs_by_end");
  }
});
