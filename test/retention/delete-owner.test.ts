/** The deletion of a whole project and of a whole organisation: access ends immediately, and nothing is left. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { ledgerObject } from "../../src/billing/rpc.ts";
import { ApiError } from "../../src/contract/api-error.ts";
import { DeletionView } from "../../src/contract/deletion.ts";
import { PERMISSIONS } from "../../src/contract/identity.ts";
import { ProjectObject } from "../../src/retention/object.ts";
import { admit } from "../accounts/admit.ts";
import { alarm, inProject, keysUnder, kill, LATER_MS } from "../kernel/deleting.ts";
import { inside, openPlatform, type TestApi } from "../kernel/platform.ts";
import { questions, RIGHT } from "../kernel/rows.ts";
import { script } from "../kernel/script.ts";

const TABLES = [
  ...["api_keys", "datasets", "endpoints", "idempotency_keys", "judge_verdicts", "runs", "secrets", "triggers"],
  ...["trainer_tokens", "members", "invitations"],
  ...["budgets", "usage_hours", "dataset_uploads"],
];

/** Rows of the organisation, by table; empty tables are left out. */
async function rowsOf(orgId: string): Promise<Record<string, number>> {
  const counted = TABLES.map(async (table) => {
    const row = await env.DB.prepare(`select count(*) as n from ${table} where org_id = ?`).bind(orgId).first("n");
    return [table, Number(row)] as const;
  });
  return Object.fromEntries((await Promise.all(counted)).filter(([, n]) => n > 0));
}

/** Adds a run, a dataset, an upload in parts that is not complete, a secret, an endpoint, and a trigger with a delivery. */
async function furnish(api: TestApi): Promise<string> {
  const { id } = await api.finish({ environment: "gsm8k", dataset: questions(2), model: script(RIGHT) });
  await api.post("/v1/secrets", { name: "WORD", value: "a secret of this project" });
  const run = {
    environment: "gsm8k",
    dataset: questions(1),
    model: script(RIGHT),
    endpoint: { base_url: env.MODEL_URL },
  };
  const asked = {
    name: "hook",
    verify: { scheme: "huggingface", secret: "a-secret-that-is-sent" },
    run,
    when: { "$.a": 1 },
  };
  const { url } = await (await api.post("/v1/triggers", asked, { "idempotency-key": "hook-1" })).json<{
    url: string;
  }>();
  await api.post(new URL(url).pathname, {}, { "x-webhook-secret": asked.verify.secret });
  await api.ask("/v1/datasets?name=rows", {
    method: "POST",
    body: '{"question":"a","answer":"#### 1"}\n',
    headers: { "content-type": "application/jsonl", "idempotency-key": "rows-1" },
  });
  const { id: upload } = await (await api.post("/v1/dataset-uploads", {})).json<{ id: string }>();
  await api.ask(`/v1/dataset-uploads/${upload}/parts/1`, {
    method: "PUT",
    body: '{"question"',
    headers: { "content-type": "application/octet-stream" },
  });
  await env.DB.prepare("insert into judge_verdicts values (?, ?, 'k', '{}', 0)")
    .bind(api.scope.orgId, api.scope.projectId)
    .run();
  return id;
}

async function remove(api: TestApi, token: string, path: string, body?: object): Promise<Response> {
  return await api.ask(path, {
    method: "DELETE",
    headers: { authorization: `Bearer ${token}`, ...(body && { "content-type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
}

const admin = (api: TestApi) => admit(api.scope, { project_id: null });
const operator = async () => {
  const house = `org_${crypto.randomUUID()}`;
  return await admit({ orgId: house, projectId: `pj_${house}` }, { project_id: null, scopes: [...PERMISSIONS] });
};

async function done(
  api: TestApi,
  token: string,
  id: string,
  work: (round: number) => Promise<void>,
): Promise<DeletionView> {
  for (let round = 0; round < 80; round += 1) {
    const reply = await api.ask(`/v1/deletions/${id}`, { headers: { authorization: `Bearer ${token}` } });
    const view = DeletionView.parse(await reply.json());
    if (view.state === "done") return view;
    await work(round);
  }
  throw new Error(`${id} is not done`);
}

test("a project is deleted with everything in it, despite a kill after every slice, and others stay", async () => {
  const api = await openPlatform();
  const token = await admin(api);
  const beside = await openPlatform(api.scope.orgId);
  await furnish(beside);
  const before = await rowsOf(api.scope.orgId);
  const run = await furnish(api);
  const narrow = await api.ask(`/v1/projects/${api.scope.projectId}`, { method: "DELETE" });
  expect(narrow.status).toBe(403);
  const begun = await remove(api, token, `/v1/projects/${api.scope.projectId}`);
  expect(begun.status).toBe(202);
  const { id } = DeletionView.parse(await begun.json());
  // An isolate's cached key expires within seconds.
  const open = "select count(*) as n from api_keys where project_id = ? and revoked_at is null";
  expect(await env.DB.prepare(open).bind(api.scope.projectId).first("n")).toBe(0);
  expect(DeletionView.parse(await (await remove(api, token, `/v1/projects/${api.scope.projectId}`)).json()).id).toBe(
    id,
  );
  const receipt = await done(api, token, id, async (round) => {
    await alarm(api, LATER_MS + round * 60_000);
    await kill(api);
  });
  expect(receipt.counts).toMatchObject({ projects: 1, runs: 1 });
  // The project's key was one of those rows.
  expect(await rowsOf(api.scope.orgId)).toEqual({ ...before, api_keys: (before["api_keys"] ?? 0) - 1 });
  const { orgId, projectId } = api.scope;
  expect(await keysUnder(`org/${orgId}/${projectId}/`)).toEqual([]);
  expect(await inProject(api, (_, { storage }) => [...storage.kv.list()].length)).toBe(0);
  expect(await api.inRun(run, (it) => it.view())).toBeNull();
  expect((await beside.ask("/v1/runs")).status).toBe(200);
});

test("an organisation is deleted only by its name, with all projects; the operator reads its receipt", async () => {
  const api = await openPlatform();
  const { orgId } = api.scope;
  const other = await openPlatform(orgId);
  await furnish(api);
  await furnish(other);
  const ledger = {
    orgId,
    kind: "top_up",
    period: "",
    project_id: null,
    against: "paid_in/operator",
    note: null,
  } as const;
  await ledgerObject(env, orgId).post({ ...ledger, source_id: "top_1", amount_micros: 700 });
  await ledgerObject(env, orgId).post({ ...ledger, kind: "dispute", source_id: "dp_1", amount_micros: -900 });
  const token = await admin(api);
  const wrong = await remove(api, token, "/v1/organization", { confirm: "somebody else" });
  expect(wrong.status).toBe(400);
  expect(ApiError.parse(await wrong.json()).error.param).toBe("confirm");
  const begun = await remove(api, token, "/v1/organization", { confirm: orgId });
  expect(begun.status).toBe(202);
  const { id } = DeletionView.parse(await begun.json());
  const above = await operator();
  const whole = () => env.PROJECT.getByName(`org/${orgId}`);
  const receipt = await done(api, above, id, async (round) => {
    const later = LATER_MS + round * 60_000;
    await inside(whole(), ProjectObject, async (project) => {
      project.now = () => Date.now() + later;
      await project.alarm();
    });
    for (const of of [api, other]) await alarm(of, later);
  });
  expect(receipt).toMatchObject({ kind: "organization", target_id: orgId, counts: { projects: 2, runs: 2 } });
  expect(receipt.counts).toMatchObject({ ledger_entries: 2, owed_micros: 200 });
  expect(await ledgerObject(env, orgId).balance(orgId)).toMatchObject({ entries: 0, balance_micros: 0 });
  expect(await rowsOf(orgId)).toEqual({});
  for (const table of [
    "projects where org_id",
    "organizations where id",
    "deletions where kind != 'organization' and org_id",
  ]) {
    expect(await env.DB.prepare(`select count(*) as n from ${table} = ?`).bind(orgId).first("n"), table).toBe(0);
  }
  expect(await keysUnder(`org/${orgId}/`)).toEqual([]);
  expect(await inside(whole(), ProjectObject, (_, { storage }) => [...storage.kv.list()].length)).toBe(0);
});
