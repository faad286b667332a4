/** Counts of the deployment: what triggers keep of runs that ended, and what is read of those that go on. */
import { env } from "cloudflare:workers";
import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { beforeEach, expect, test } from "vitest";
import type { RunCounts } from "../../src/contract/run.ts";
import { totals } from "../../src/db/deployment-schema.ts";
import { countUnfinishedRuns, listEndpointsInUse, readTotals } from "../../src/db/metrics.ts";
import { insertRun, type NewRun, updateRun } from "../../src/db/runs.ts";
import { runs } from "../../src/db/schema.ts";
import { admit } from "../api/accounts.ts";
import { endpointRow, runRow } from "../api/run-rows.ts";

const scope = { orgId: `org_${crypto.randomUUID()}`, projectId: `pj_${crypto.randomUUID()}` };
await admit(scope);

beforeEach(async () => {
  const d1 = drizzle(env.DB);
  await d1.batch([d1.delete(runs), d1.delete(totals)]);
});

const NONE: RunCounts = {
  ...{ planned: 9, pending: 2, dispatched: 7, in_flight: 1, scored: 0 },
  ...{ unscored: {}, failed: {}, cancelled: {} },
};

async function begun(changes: Partial<NewRun> = {}): Promise<string> {
  const row = runRow(endpointRow(), { id: `run_${crypto.randomUUID()}`, ...changes });
  expect(await insertRun(env.DB, scope, row, null)).toBe("inserted");
  return row.id;
}

async function counted(): Promise<Record<string, number>> {
  const read = await readTotals(env.DB);
  return Object.fromEntries(read.filter(({ n }) => n > 0).map(({ kind, name, n }) => [`${kind}/${name}`, n]));
}

const SOME: RunCounts = { ...NONE, scored: 3, unscored: { judge: 1 }, failed: { provider: 2 }, cancelled: { user: 4 } };
const SUMS = { "scored/": 3, "unscored/judge": 1, "failed/provider": 2, "cancelled/user": 4 };

test("what ended is the same sum before a run's end, after it, and after the run is gone", async () => {
  const id = await begun();
  await updateRun(env.DB, scope, id, { status: "running", counts: SOME });
  expect(await counted()).toEqual(SUMS);
  await updateRun(env.DB, scope, id, { status: "completed", counts: SOME, finished_at: 5, dead_letters: 2 });
  const ended = { ...SUMS, "runs/completed": 1, "dead_letters/": 2 };
  expect(await counted()).toEqual(ended);
  await drizzle(env.DB).delete(runs).where(eq(runs.id, id));
  expect(await counted()).toEqual(ended);
});

test("a row that is written again changes nothing, and rollouts that are corrected count as they stand", async () => {
  const id = await begun();
  const last = { status: "completed", counts: SOME, finished_at: 5, dead_letters: 0 } as const;
  for (let time = 0; time < 3; time += 1) await updateRun(env.DB, scope, id, last);
  expect(await counted()).toEqual({ ...SUMS, "runs/completed": 1 });
  await updateRun(env.DB, scope, id, { ...last, status: "failed", counts: { ...SOME, scored: 5 } });
  expect(await counted()).toEqual({ ...SUMS, "scored/": 5, "runs/completed": 1 });
});

test("a retry that opens an ended run again takes nothing back, and its next end is another", async () => {
  const id = await begun();
  await updateRun(env.DB, scope, id, { status: "completed", counts: SOME, finished_at: 5 });
  await updateRun(env.DB, scope, id, { status: "running", counts: SOME, finished_at: null });
  expect(await counted()).toEqual({ ...SUMS, "runs/completed": 1 });
  await updateRun(env.DB, scope, id, { status: "completed", counts: { ...SOME, scored: 4 }, finished_at: 9 });
  expect(await counted()).toEqual({ ...SUMS, "scored/": 4, "runs/completed": 2 });
});

test("a run that is deleted before its end counts as cancelled, with what of it had ended", async () => {
  const id = await begun();
  await updateRun(env.DB, scope, id, { status: "running", counts: SOME });
  await drizzle(env.DB).delete(runs).where(eq(runs.id, id));
  expect(await counted()).toEqual({ ...SUMS, "runs/cancelled": 1 });
});

test("runs that have not ended are counted by status, with what they have left", async () => {
  await begun();
  for (const status of ["running", "running", "completed"] as const) {
    const id = await begun();
    await updateRun(env.DB, scope, id, { status, counts: NONE, finished_at: status === "completed" ? 5 : null });
  }
  const rows = await countUnfinishedRuns(env.DB);
  expect(rows.toSorted((one, other) => one.status.localeCompare(other.status))).toEqual([
    { status: "queued", runs: 1, pending: 0, in_flight: 0 },
    { status: "running", runs: 2, pending: 4, in_flight: 2 },
  ]);
});

test("endpoints in use are those of policies and judges, busiest first, and those used lately", async () => {
  const judged = runRow(endpointRow({ id: "ep_policy" }));
  const judges = { grader: { ...judged.spec.judges?.["grader"], endpoint_id: "ep_judge", model: "m" } };
  const spec = { ...judged.spec, judges } as NewRun["spec"];
  await begun({ endpoint_id: "ep_policy", spec });
  await begun({ endpoint_id: "ep_policy" });
  const old = await begun({ endpoint_id: "ep_old" });
  const late = await begun({ endpoint_id: "ep_late" });
  await updateRun(env.DB, scope, old, { status: "completed", finished_at: 10 });
  await updateRun(env.DB, scope, late, { status: "completed", finished_at: 1000 });
  const listed = await listEndpointsInUse(env.DB, { since: 500, limit: 2 });
  expect(listed).toEqual([
    { endpoint_id: "ep_policy", scope, of: 3 },
    { endpoint_id: "ep_judge", scope, of: 3 },
  ]);
});

test("no statement looks at runs that ended long ago", async () => {
  const plans: string[] = [];
  const noting = new Proxy(env.DB, {
    get: (target, name) =>
      name !== "prepare"
        ? Reflect.get(target, name)
        : (query: string) => {
            plans.push(query);
            return target.prepare(query);
          },
  });
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
