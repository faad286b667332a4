/** The daily reconciliation of a project, with the test's clock: only expired data is deleted. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { ledgerObject } from "../../src/billing/rpc.ts";
import type { Retention } from "../../src/contract/identity.ts";
import { answersFolder, partsFolder, uploadKeys } from "../../src/kernel/kit/names.ts";
import { ProjectObject } from "../../src/retention/object.ts";
import { expectGone, inProject, keysUnder, projectStub } from "../kernel/deleting.ts";
import { openPaying } from "../kernel/paying.ts";
import { inside, openPlatform, type TestApi } from "../kernel/platform.ts";
import { questions, RIGHT } from "../kernel/rows.ts";
import { script } from "../kernel/script.ts";

const DAY_MS = 24 * 3600_000;

async function keeping(api: TestApi, retention: Partial<Retention>): Promise<void> {
  const { projectId } = api.scope;
  await env.DB.prepare("update projects set retention = ? where id = ?")
    .bind(JSON.stringify(retention), projectId)
    .run();
  await inProject(api, (project) => project.note(api.scope));
}

const ended = (api: TestApi) => api.finish({ environment: "gsm8k", dataset: questions(2), model: script(RIGHT) });

async function upload(api: TestApi): Promise<string> {
  const reply = await api.ask("/v1/datasets", {
    method: "POST",
    body: '{"question":"a","answer":"#### 1"}\n',
    headers: { "content-type": "application/jsonl", "idempotency-key": crypto.randomUUID() },
  });
  return (await reply.json<{ id: string }>()).id;
}

/**
 * Runs the alarm that many days from now, until nothing is left to do. A deletion waits until its run owes nothing: its
 * next try comes as soon as the clock can be moved to it.
 */
async function after(api: TestApi, days: number): Promise<number | null> {
  return await inProject(api, async (project, { storage }) => {
    let now = Date.now() + days * DAY_MS;
    project.now = () => now;
    for (;;) {
      await project.alarm();
      const at = await storage.getAlarm();
      const due = at !== null && (at <= now || (await deletionsUnderWay(api)) > 0);
      if (!due) return at === null ? null : Math.round((at - now) / DAY_MS);
      now = Math.max(now, at);
    }
  });
}

async function deletionsUnderWay(api: TestApi): Promise<number> {
  const query = "select count(*) as n from deletions where project_id = ? and state != 'done'";
  return Number(await env.DB.prepare(query).bind(api.scope.projectId).first("n"));
}

async function countOf(api: TestApi, table: string): Promise<number> {
  const query = `select count(*) as n from ${table} where project_id = ?`;
  return Number(await env.DB.prepare(query).bind(api.scope.projectId).first("n"));
}

/** A run's end reaches D1 within a second. */
const told = (id: string) =>
  expect
    .poll(() => env.DB.prepare("select finished_at as at from runs where id = ?").bind(id).first("at"))
    .not.toBeNull();

test("runs and datasets older than the retention are deleted like any others", async () => {
  const api = await openPlatform();
  const { id } = await ended(api);
  const dataset = await upload(api);
  await told(id);
  await keeping(api, { runs_days: 10, datasets_days: 10 });
  expect(await after(api, 9)).toBe(1);
  expect(await api.run(id)).toMatchObject({ status: "completed" });
  expect(await after(api, 11)).toBe(1);
  await expectGone(api, id);
  const { key } = uploadKeys(api.scope, dataset);
  expect(await keysUnder(key)).toEqual([]);
  expect((await api.ask(`/v1/datasets/${dataset}`)).status).toBe(404);
  const { data } = await (await api.ask("/v1/deletions")).json<{ data: object[] }>();
  expect(data).toEqual([expect.objectContaining({ target_id: id, state: "done" })]);
  const row = await env.DB.prepare("select requested_by as who from deletions where target_id = ?")
    .bind(id)
    .first("who");
  expect(row).toBe("retention");
});

test("data within the retention stays, and so do unfinished runs and a dataset that one uses", async () => {
  const api = await openPlatform();
  const { id } = await ended(api);
  await told(id);
  const dataset = await upload(api);
  const going = await api.start({
    environment: "gsm8k",
    dataset,
    model: script([{ fault: { kind: "hang" } }]),
  });
  await after(api, 4000);
  expect((await api.run(id)).status).toBe("completed");
  await keeping(api, { datasets_days: 1, runs_days: 5000 });
  await after(api, 4001);
  expect((await api.ask(`/v1/datasets/${dataset}`)).status).toBe(200);
  await keeping(api, { runs_days: 1 });
  await after(api, 4002);
  expect((await api.ask(`/v1/runs/${id}`)).status).toBe(404);
  expect((await api.ask(`/v1/runs/${going.id}`)).status).toBe(200);
  await api.post(`/v1/runs/${going.id}/cancel`, {});
});

test("cached answers are deleted at the end of the period after the one in which they came", async () => {
  const api = await openPlatform();
  const cache = { sampling: { temperature: 0 }, answer_cache: true };
  await api.finish({ environment: "gsm8k", dataset: questions(2), model: script(RIGHT), ...cache });
  const kept = await keysUnder(answersFolder(api.scope));
  expect(kept).toHaveLength(2);
  expect(await after(api, 29)).toBe(1);
  expect(await keysUnder(answersFolder(api.scope))).toEqual(kept);
  await after(api, 61);
  expect(await keysUnder(answersFolder(api.scope))).toEqual([]);
});

test("judgements, keys and receipts are deleted by the thousand, and an empty project has no alarm", async () => {
  const api = await openPlatform();
  const { orgId, projectId } = api.scope;
  const dataset = await upload(api);
  const rows = `with recursive n(i) as (select 1 union all select i + 1 from n where i < 2100)`;
  const now = Date.now();
  await env.DB.prepare(`insert into judge_verdicts ${rows} select ?, ?, 'k' || i, '{}', ? from n`)
    .bind(orgId, projectId, now)
    .run();
  await env.DB.prepare(
    `insert into deletions (id, org_id, project_id, kind, target_id, state, counts, requested_by, created_at, finished_at)
      values (?, ?, ?, 'run', ?, 'done', '{}', 'key', 0, ?)`,
  )
    .bind(`del_${projectId}`, orgId, projectId, `run_${projectId}`, now)
    .run();
  await after(api, 1);
  expect(await countOf(api, "idempotency_keys")).toBe(1);
  await after(api, 3);
  expect([await countOf(api, "idempotency_keys"), await countOf(api, "judge_verdicts")]).toEqual([0, 2100]);
  expect(await countOf(api, "deletions")).toBe(1);
  // Storage is counted each day.
  expect(await after(api, 91)).toBe(1);
  expect([await countOf(api, "judge_verdicts"), await countOf(api, "deletions")]).toEqual([0, 0]);
  expect((await api.ask(`/v1/datasets/${dataset}`)).status).toBe(200);
  await api.ask(`/v1/datasets/${dataset}`, { method: "DELETE" });
  await dropKeys(api);
  expect(await after(api, 93)).toBeNull();
});

test("the reconciliation starts a deletion of which its object was never notified", async () => {
  const api = await openPlatform();
  const { id } = await ended(api);
  await env.DB.batch([
    env.DB.prepare("update runs set deleted_at = 1 where id = ?").bind(id),
    env.DB.prepare(
      `insert into deletions (id, org_id, project_id, kind, target_id, state, counts, requested_by, created_at)
        values (?, ?, ?, 'run', ?, 'queued', '{}', 'key', ?)`,
    ).bind(`del_${id}`, api.scope.orgId, api.scope.projectId, id, Date.now()),
  ]);
  await after(api, 2);
  await expectGone(api, id);
});

test("the reconciliation of a deleted project ends for good", async () => {
  const api = await openPlatform();
  await ended(api);
  await env.DB.prepare("delete from projects where id = ?").bind(api.scope.projectId).run();
  expect(await after(api, 2)).toBeNull();
  const kept = await inside(projectStub(api), ProjectObject, (_, { storage }) => [...storage.kv.list()].length);
  expect(kept).toBe(0);
});

/** The deletion of a dataset may store its request: such keys have their own retention. */
async function dropKeys({ scope }: TestApi): Promise<void> {
  for (const table of ["idempotency_keys", "deletions"]) {
    await env.DB.prepare(`delete from ${table} where project_id = ?`).bind(scope.projectId).run();
  }
}

test("storage is posted once a day, and missed days are posted later, at most 31", async () => {
  const api = await openPaying(1_000_000);
  const dataset = await upload(api);
  await env.DB.prepare("update datasets set bytes = 2000000000 where id = ?").bind(dataset).run();
  await inProject(api, (project) => project.note(api.scope));
  const posted = async () => {
    const query = { before: null, limit: 1000, kind: "storage", source_id: null, run_id: null } as const;
    return (await ledgerObject(env, api.scope.orgId).entries(query)).entries;
  };
  await after(api, 1);
  const [first] = await posted();
  expect(first).toMatchObject({ source_id: api.scope.projectId, period: dayFrom(1), amount_micros: -2000 });
  // The same day again, as after a kill before it was noted.
  await inProject(api, (_, { storage }) => storage.kv.put("stored_day", Math.floor(Date.now() / DAY_MS)));
  await after(api, 4);
  expect((await posted()).map(({ period }) => period)).toEqual([4, 3, 2, 1].map(dayFrom));
  await after(api, 100);
  expect(await posted()).toHaveLength(4 + 31);
});

test("a project that stored nothing for weeks pays from the day it stores something", async () => {
  const api = await openPaying(1_000_000);
  const { orgId } = api.scope;
  const store = async (days: number) => {
    const dataset = await upload(api);
    await env.DB.prepare("update datasets set bytes = 2000000000 where id = ?").bind(dataset).run();
    await inProject(api, async (project) => {
      project.now = () => Date.now() + days * DAY_MS;
      await project.note(api.scope);
    });
    return dataset;
  };
  const days = async () => {
    const query = { before: null, limit: 1000, kind: "storage", source_id: null, run_id: null } as const;
    return (await ledgerObject(env, orgId).entries(query)).entries.map(({ period }) => period);
  };
  const dataset = await store(0);
  await after(api, 1);
  await api.ask(`/v1/datasets/${dataset}`, { method: "DELETE" });
  await dropKeys(api);
  expect(await after(api, 3)).toBeNull();
  await store(30);
  await after(api, 31);
  expect(await days()).toEqual([31, 1].map(dayFrom));
});

function dayFrom(days: number): string {
  return new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);
}

test("an upload in parts that was never completed is deleted with its parts, and the reconciliation then ends", async () => {
  const api = await openPlatform();
  const { id } = await (await api.post("/v1/dataset-uploads", {})).json<{ id: string }>();
  const part = { method: "PUT", body: '{"question"', headers: { "content-type": "application/octet-stream" } };
  expect((await api.ask(`/v1/dataset-uploads/${id}/parts/1`, part)).status).toBe(200);
  const folder = partsFolder(api.scope, id);
  expect(await after(api, 7)).toBe(1);
  expect(await keysUnder(folder)).toHaveLength(1);
  expect(await after(api, 9)).toBe(null);
  expect(await keysUnder(folder)).toEqual([]);
  expect(await countOf(api, "dataset_uploads")).toBe(0);
});
