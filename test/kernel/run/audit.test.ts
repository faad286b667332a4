/** The audit: it reports nothing about an intact run, and names the difference if one of the four records changed. */

import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, test, vi } from "vitest";
import type { AuditViolation, RunAudit } from "../../../src/contract/audit.ts";
import type { RunView } from "../../../src/contract/run.ts";
import { PROCESS_SCHEDULER } from "../../../src/kernel/kit/fair-scheduler.ts";
import { segmentKey, trajectoryKey } from "../../../src/kernel/kit/names.ts";
import type { RunMessage } from "../../../src/kernel/messages/wire.ts";
import type { RunHead } from "../../../src/kernel/run/schema.ts";
import { deliver, segmentLines } from "../hand-made.ts";
import { openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

const HOUR = 3600_000;
const REFUSED = { fault: { kind: "status", status: 404 } } as const;

async function audit(id: string): Promise<RunAudit> {
  const response = await platform.ask(`/v1/runs/${id}/audit`);
  expect(response.status).toBe(200);
  return await response.json();
}

function rulesOf({ violations }: RunAudit): string[] {
  return [...new Set(violations.map(({ rule }) => rule))];
}

function byDetail(one: AuditViolation, other: AuditViolation): number {
  return one.detail < other.detail ? -1 : 1;
}

/** A run of five rollouts of which one failed. It has ended, is written to the database and compacted. */
async function settled(): Promise<RunView> {
  const run = await platform.finish({
    environment: "gsm8k",
    dataset: questions(5, ["bad"]),
    model: script(RIGHT, { bad: [REFUSED] }),
    min_scored: 0.5,
  });
  await segmentLines(platform, run.id);
  await written(run.id);
  return run;
}

/** Lets the run write to the database what is pending, as if this many hours had passed. */
async function written(id: string, hours = 1): Promise<void> {
  await platform.inRun(id, async (run) => {
    run.now = () => Date.now() + hours * HOUR;
    await run.alarm();
    run.now = () => Date.now();
  });
}

/** Changes the stored head, and lets a new instance read it: the running one has cached its head, and may write it. */
async function changeHead(id: string, changes: Partial<RunHead>): Promise<void> {
  const stored = () =>
    platform.inRun(id, (_, { storage }) => {
      const head = storage.kv.get<RunHead>("head");
      storage.kv.put("head", { ...head, ...changes });
      return Object.entries(changes).every(([name, value]) => head?.[name as keyof RunHead] === value);
    });
  while (!(await stored())) await evictDurableObject(platform.runStub(id));
}

test("all records of an intact run agree, and nothing is violated", async () => {
  const run = await settled();
  const found = await audit(run.id);
  expect(found).toMatchObject({ object: "audit", run_id: run.id, holds: true, violations: [] });
  expect(found.counts).toEqual(run.counts);
  expect(found.sources.run_rows).toEqual(found.sources.counters);
  expect(found.sources.d1).toEqual({ ...run.counts, current: true });
  expect(found.sources.r2).toEqual({ segments: 1, rollouts: 5, trajectories: 0 });
});

test("an audit waits for its scheduling turn before each look, and counts every row of the run", async () => {
  const run = await settled();
  const spend = vi.spyOn(PROCESS_SCHEDULER, "spend");
  const stepsOf = async (dispatched: number) => {
    await changeHead(run.id, { dispatched });
    spend.mockClear();
    await audit(run.id);
    return spend.mock.calls.flatMap(([org, steps]) => (org === platform.scope.orgId ? [steps] : []));
  };
  expect(await stepsOf(5)).toEqual([200]);
  // The counter differs from the rows, so everything is read twice.
  expect(await stepsOf(4)).toEqual([160, 160]);
  spend.mockRestore();
});

test("a run under way holds too, before anything of it is written or compacted", async () => {
  const model = script(RIGHT, { slow: [{ fault: { kind: "hang" } }] });
  const run = await platform.start({
    environment: "gsm8k",
    dataset: questions(3, ["slow"]),
    model,
  });
  await requestsOf(model, 3);
  expect(await audit(run.id)).toMatchObject({ holds: true, violations: [] });
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  await platform.ended(run.id);
  expect(await audit(run.id)).toMatchObject({ holds: true, violations: [] });
});

test("a retried run holds, while it runs and after", async () => {
  const run = await settled();
  await platform.post(`/v1/runs/${run.id}/retry`, {});
  expect(await audit(run.id)).toMatchObject({ holds: true });
  await platform.ended(run.id);
  await written(run.id, 2);
  const found = await audit(run.id);
  expect(found).toMatchObject({ holds: true, violations: [], counts: { planned: 6 } });
  expect(found.sources.d1).toMatchObject({ planned: 6, failed: { provider: 2 }, current: true });
});

test("a changed counter is named, with the number from the rows", async () => {
  const run = await settled();
  await changeHead(run.id, { scored: 3 });
  const found = await audit(run.id);
  expect(found.holds).toBe(false);
  expect(rulesOf(found)).toContain("accounting_law");
  expect(found.violations).toContainEqual({
    rule: "counters_match_rows",
    detail: "scored: 3, not 4 in the rows",
  });
});

test("a changed row of the run is named, by the count that it changes", async () => {
  const run = await settled();
  await platform.inRun(run.id, (_, { storage }) => {
    storage.sql.exec("update rollouts set outcome = 'unscored', reason = 'scorer' where seq = 2");
    storage.sql.exec("update rollouts set finish_seq = 9 where seq = 3");
  });
  const found = await audit(run.id);
  expect(rulesOf(found)).toEqual(expect.arrayContaining(["counters_match_rows", "ends_are_numbered"]));
  expect(found.violations).toContainEqual({
    rule: "counters_match_rows",
    detail: "unscored.scorer: 0, not 1 in the rows",
  });
});

test.each([
  ["lost", "delete from rollouts", { segmented: 0 }],
  ["more than were counted", "select 1", { finished: 2, segmented: 0 }],
])("rows that are %s stop no alarm, and are named", async (_, change, counted) => {
  const run = await settled();
  await platform.inRun(run.id, (_run, { storage }) => storage.sql.exec(change).toArray());
  await changeHead(run.id, counted);
  await written(run.id, 2);
  expect((await audit(run.id)).holds).toBe(false);
});

test("the run's row in the database is compared with its counters, and its usage with the rows", async () => {
  const run = await settled();
  const set = (column: string, path: string, value: number) =>
    env.DB.prepare(`update runs set ${column} = json_set(${column}, ?, ?) where id = ?`)
      .bind(path, value, run.id)
      .run();
  await set("counts", "$.scored", 5);
  await set("report", "$.usage.prompt_tokens", 7);
  const { calls, usage } = run.report;
  await platform.inRun(run.id, (_, { storage }) => storage.sql.exec("update rollouts set calls = 9 where seq = 2"));
  const found = await audit(run.id);
  expect(found.holds).toBe(false);
  expect(found.sources.d1).toMatchObject({ scored: 5, current: true });
  expect(found.violations.toSorted(byDetail)).toEqual([
    { rule: "d1_run_matches", detail: `calls: ${calls}, not ${calls + 8}` },
    { rule: "d1_run_matches", detail: `prompt_tokens: 7, not ${usage.prompt_tokens}` },
    { rule: "d1_run_matches", detail: "scored: 5, not 4" },
  ]);
});

test("a segment that is missing or has other content is named by its key", async () => {
  const run = await settled();
  const key = await keyOf(run.id);
  const whole = await (await env.STORE.get(key))?.text();
  await env.STORE.put(key, `${whole} `);
  const changed = await audit(run.id);
  expect(rulesOf(changed)).toEqual(["r2_object_matches"]);
  expect(changed.violations[0]?.detail).toContain(key);
  await env.STORE.delete(key);
  const gone = await audit(run.id);
  expect(gone.violations).toEqual([{ rule: "r2_has_every_object", detail: `${key} is missing` }]);
  expect(gone.sources.r2).toEqual({ segments: 0, rollouts: 0, trajectories: 0 });
  await env.STORE.put(key, whole ?? "");
  expect(await audit(run.id)).toMatchObject({ holds: true });
});

test("a trajectory that neither the run nor the store has is named", async () => {
  const model = script(RIGHT, { slow: [{ fault: { kind: "hang" } }] });
  const dataset = questions(2, ["plain", "slow"]);
  const run = await platform.start({ environment: "gsm8k", dataset, model, max_concurrent: 1 });
  await requestsOf(model, 2);
  await platform.inRun(run.id, (_, { storage }) => {
    storage.sql.exec("delete from trajectories where seq = 1");
  });
  expect(rulesOf(await audit(run.id))).toEqual(["r2_has_every_object"]);
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  await platform.ended(run.id);
});

test("a large trajectory that is in no segment yet is an object of its own, and named if it is missing", async () => {
  const model = script(RIGHT, { slow: [{ fault: { kind: "hang" } }] });
  const [large, ...slow] = questions(2, ["plain", "slow"]);
  const dataset = [{ ...large, question: "many words ".repeat(4000) }, ...slow];
  const run = await platform.start({ environment: "gsm8k", dataset, model, max_concurrent: 1 });
  await requestsOf(model, 2);
  const whole = await audit(run.id);
  expect(whole).toMatchObject({ holds: true, sources: { r2: { segments: 0, trajectories: 1 } } });
  const { objects } = await env.STORE.list({
    prefix: trajectoryKey(platform.scope, run.id, "").replace(/[.]json$/, ""),
  });
  const key = objects[0]?.key ?? "";
  await env.STORE.delete(key);
  expect((await audit(run.id)).violations).toEqual([{ rule: "r2_has_every_object", detail: `${key} is missing` }]);
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  await platform.ended(run.id);
});

test("dead letters are counted on the run, and the audit notes them but does not count them as a violation", async () => {
  const run = await settled();
  const { scope } = platform;
  const letter: RunMessage = { kind: "scores", scope, run_id: run.id, units: [1] };
  await deliver("rollout-scores-dead", [letter, letter]);
  expect((await platform.run(run.id)).dead_letters).toBe(2);
  const found = await audit(run.id);
  expect(found).toMatchObject({ holds: true, notes: [expect.stringContaining("2 messages")] });
  await written(run.id, 2);
  const listed = await platform.ask(`/v1/runs?limit=100`);
  const { data } = await listed.json<{ data: RunView[] }>();
  expect(data.find(({ id }) => id === run.id)?.dead_letters).toBe(2);
});

async function keyOf(runId: string): Promise<string> {
  const prefix = segmentKey(platform.scope, runId, "").replace(/\.jsonl$/, "");
  const { objects } = await env.STORE.list({ prefix });
  return objects[0]?.key ?? "";
}
