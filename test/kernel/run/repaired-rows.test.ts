/** The rows of runs are made again after the database was taken back to a time before the runs. */
import { env, exports } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { repairRuns } from "../../../src/backup/repair.ts";
import { BACKUP_PATH, RepairedPage } from "../../../src/backup/wire.ts";
import { RunAudit } from "../../../src/contract/audit.ts";
import { EvalRequest } from "../../../src/contract/eval-request.ts";
import { folderOf, runIndexKey } from "../../../src/kernel/kit/names.ts";
import { operatorToken } from "../../../src/kernel/kit/secrets.ts";
import { acceptRun } from "../../../src/kernel/service/accept-run.ts";
import { TEST_HANGS_MS } from "../../hang-limits.ts";
import { cutOffAt } from "../cut-off.ts";
import { done, expectGone, kill, remove } from "../deleting.ts";
import { openPlatform, release, requestsOf, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

const request = (rollouts = 2) => ({ environment: "gsm8k", dataset: questions(rollouts), model: script(RIGHT) });

/** Deletes the rows of runs, as if the database was taken back to a time before them. */
async function takeBack(ids: readonly string[], tables: readonly string[] = ["endpoints", "runs"]): Promise<void> {
  for (const id of ids) {
    if (tables.includes("endpoints")) {
      const query = "delete from endpoints where id in (select endpoint_id from runs where id = ?)";
      await env.DB.prepare(query).bind(id).run();
    }
    if (tables.includes("runs")) await env.DB.prepare("delete from runs where id = ?").bind(id).run();
  }
}

/** The platform with the files of one project: a repair goes on with the next one, which another test may use. */
function platformOf({ scope }: TestApi): Env {
  const list = (options: R2ListOptions) => env.STORE.list({ ...options, prefix: folderOf(scope) });
  const get = (store: R2Bucket, name: string | symbol): unknown => {
    const member: unknown = name === "list" ? list : Reflect.get(store, name);
    return typeof member === "function" ? member.bind(store) : member;
  };
  return { ...env, STORE: new Proxy(env.STORE, { get }) };
}

/** Repairs the runs of one project. */
async function repair(
  of: TestApi,
  { now = Date.now(), one = (after: string) => repairRuns(platformOf(of), after, now) } = {},
) {
  const folder = folderOf(of.scope);
  const parts: RepairedPage[] = [];
  for (let after: string | null = folder; after?.startsWith(folder); ) {
    const part: RepairedPage = await one(after);
    const isOwn = part.next?.startsWith(folder) === true;
    if (isOwn) parts.push(part);
    after = part.next;
  }
  const sum = (name: "checked" | "restored" | "updated" | "deleted") =>
    parts.reduce((all, part) => all + part[name], 0);
  return {
    ...{ checked: sum("checked"), restored: sum("restored"), updated: sum("updated"), deleted: sum("deleted") },
    unowned: parts.flatMap(({ unowned }) => unowned.map(({ run_id }) => run_id)),
    failed: parts.flatMap(({ failed }) => failed),
  };
}

/** Everything that a reader sees of a run; and that its audit holds. */
async function seen(of: TestApi, id: string): Promise<unknown> {
  const audit = RunAudit.parse(await (await of.ask(`/v1/runs/${id}/audit`)).json());
  expect(audit.violations).toEqual([]);
  const list = await (await of.ask("/v1/runs")).json<{ data: { id: string }[] }>();
  const { report, ...run } = await of.run(id);
  const listed = list.data.find((one) => one.id === id);
  return { run, rewards: report.reward, listed: { ...listed, report: null }, results: await of.results(id) };
}

/** What lists show is written within a second: here at once. */
async function settle(of: TestApi, id: string): Promise<void> {
  await of.inRun(id, async (run) => {
    run.now = () => Date.now() + 5000;
    await run.alarm();
    run.now = () => Date.now();
  });
}

test("a run without rows is listed again with the same results, and a repeated repair changes nothing", async () => {
  const of = await openPlatform();
  const { id } = await of.finish({ ...request(), name: "mine", metadata: { batch: "7" } });
  await settle(of, id);
  const before = await seen(of, id);
  await takeBack([id]);
  expect((await of.ask(`/v1/runs/${id}`)).status).toBe(404);
  expect(await repair(of)).toEqual({ checked: 1, restored: 1, updated: 0, deleted: 0, unowned: [], failed: [] });
  expect(await seen(of, id)).toEqual(before);
  expect(await repair(of)).toMatchObject({ checked: 1, restored: 0, updated: 0 });
  expect(await seen(of, id)).toEqual(before);
});

test("a run without the row of its endpoint gets it again, and a row that is older than its run is updated", async () => {
  const of = await openPlatform();
  const [{ id: first }, { id: second }] = [await of.finish(request()), await of.finish(request())];
  for (const id of [first, second]) await settle(of, id);
  const before = [await seen(of, first), await seen(of, second)];
  await takeBack([first], ["endpoints"]);
  const running = "update runs set status = 'running', finished_at = null, counts = null, report = null where id = ?";
  await env.DB.prepare(running).bind(second).run();
  expect(await repair(of)).toMatchObject({ checked: 2, restored: 1, updated: 1, failed: [] });
  expect([await seen(of, first), await seen(of, second)]).toEqual(before);
});

test("an unfinished run whose row was lost is played to its end after a repair, and makes each call once", async () => {
  const of = await openPlatform();
  const model = script(RIGHT, {}, { held: true });
  const { id } = await of.start({ environment: "gsm8k", dataset: questions(1), model });
  const [held] = await requestsOf(model, 1);
  await takeBack([id]);
  expect(await repair(of)).toMatchObject({ restored: 1 });
  await release(String(held?.["idempotency_key"]));
  expect(await of.ended(id)).toMatchObject({ status: "completed", counts: { scored: 1 } });
  expect(await requestsOf(model)).toHaveLength(1);
  await seen(of, id);
});

test("a run is restored in its own project only", async () => {
  const [of, other] = [await openPlatform(), await openPlatform()];
  const [{ id }, { id: theirs }] = [await of.finish(request()), await other.finish(request())];
  await takeBack([id, theirs]);
  expect(await repair(of)).toMatchObject({ checked: 1, restored: 1 });
  expect((await other.ask(`/v1/runs/${id}`)).status).toBe(404);
  expect((await other.ask(`/v1/runs/${theirs}`)).status).toBe(404);
  expect((await of.ask(`/v1/runs/${id}`)).status).toBe(200);
});

test("a run whose project the database does not have is listed and not restored", async () => {
  const of = await openPlatform();
  const { id } = await of.finish(request());
  await takeBack([id]);
  await env.DB.prepare("delete from projects where id = ?").bind(of.scope.projectId).run();
  expect(await repair(of)).toMatchObject({ restored: 0, unowned: [id] });
  expect(await env.DB.prepare("select id from runs where id = ?").bind(id).first()).toBeNull();
});

test("a run whose Idempotency-Key another run has by now is restored without the key", async () => {
  const of = await openPlatform();
  const body = { ...request(), endpoint: { base_url: env.MODEL_URL } };
  const create = async () =>
    (await (await of.post("/v1/runs", body, { "idempotency-key": "again" })).json<{ id: string }>()).id;
  const first = await create();
  await takeBack([first]);
  const second = await create();
  expect(second).not.toBe(first);
  expect(await repair(of)).toMatchObject({ checked: 2, restored: 1, failed: [] });
  expect(await create()).toBe(second);
  expect((await of.ended(first)).status).toBe("completed");
});

test("a repair continues after the last part that it finished, and a repeated part changes nothing", async () => {
  const of = await openPlatform();
  const ids: string[] = [];
  for (let run = 0; run < 5; run += 1) ids.push((await of.start(request(1))).id);
  await takeBack(ids);
  const parts = { one: (after: string) => repairRuns(platformOf(of), after, Date.now(), 3) };
  expect(await parts.one(folderOf(of.scope))).toMatchObject({ checked: 3, restored: 3, failed: [] });
  expect(await repair(of, parts)).toMatchObject({ checked: 5, restored: 2, failed: [] });
  for (const id of ids) expect((await of.ended(id)).status).toBe("completed");
});

test("a repair that is cut off at any call is completed by the next one", { timeout: TEST_HANGS_MS }, async () => {
  const of = await openPlatform();
  const { id } = await of.finish(request());
  await settle(of, id);
  const before = await seen(of, id);
  let calls = 0;
  for (let left = true; left; calls += 1) {
    await takeBack([id]);
    const cut = cutOffAt(calls, calls % 2 === 0 ? "before" : "after");
    const work = repairRuns(cut.env, folderOf(of.scope), Date.now()).catch(() => undefined);
    left = (await Promise.race([cut.reached.then(() => "cut"), work.then(() => "whole")])) === "cut";
    cut.bury();
    await work;
    await repair(of);
    expect(await seen(of, id)).toEqual(before);
  }
  expect(calls).toBeGreaterThan(3);
});

test("a run that is cut off at any call while it is created does not exist, or is found without its row", async () => {
  const of = await openPlatform();
  const body = EvalRequest.parse({ ...request(1), endpoint: { base_url: env.MODEL_URL } });
  for (let [call, left] = [0, true]; left; call += 1) {
    for (const at of ["before", "after"] as const) {
      const options = { idempotencyKey: `cut-${call}-${at}`, requestHash: "hash", now: Date.now() };
      const cut = cutOffAt(call, at);
      const work = acceptRun(cut.env, of.scope, body, options).catch(() => null);
      const end = await Promise.race([cut.reached.then(() => "cut"), work.then(() => "whole")]);
      left = end === "cut";
      cut.bury();
      await work;
    }
  }
  const read = "select id from runs where project_id = ?";
  const { results: rows } = await env.DB.prepare(read).bind(of.scope.projectId).all<{ id: string }>();
  const ids = rows.map(({ id }) => id);
  for (const id of ids) await of.ended(id);
  await takeBack(ids);
  expect(await repair(of)).toMatchObject({ restored: ids.length, failed: [] });
  for (const id of ids) await seen(of, id);
  // Entries of runs that were never created are deleted a day later.
  const prefix = `${folderOf(of.scope)}run-index/`;
  await repair(of, { now: Date.now() + 25 * 3600_000 });
  expect((await env.STORE.list({ prefix })).objects.map(({ key }) => key)).toEqual(
    ids.map((id) => runIndexKey(of.scope, id)).sort(),
  );
});

test("a deleted run does not come back, wherever its deletion was killed", async () => {
  const of = await openPlatform();
  const { id } = await of.finish(request());
  const { id: job } = await remove(of, id);
  const dead = async () => {
    await kill(of);
    expect(await repair(of)).toMatchObject({ restored: 0, updated: 0 });
  };
  await done(of, job, dead);
  await expectGone(of, id);
  expect(await env.STORE.head(runIndexKey(of.scope, id))).toBeNull();
  expect((await of.ask(`/v1/runs/${id}`)).status).toBe(404);
});

test("the row of a run that was being deleted when the database was taken back does not come back", async () => {
  const of = await openPlatform();
  const { id } = await of.finish(request());
  await of.inRun(id, (run) => run.close());
  await takeBack([id]);
  expect(await repair(of)).toMatchObject({ checked: 1, restored: 0 });
  expect(await env.DB.prepare("select id from runs where id = ?").bind(id).first()).toBeNull();
});

test("runs of releases without the index get an entry, from which they are restored", async () => {
  const of = await openPlatform();
  const { id } = await of.finish(request());
  await settle(of, id);
  const before = await seen(of, id);
  await env.STORE.delete(runIndexKey(of.scope, id));
  await takeBack([]);
  expect(await repair(of)).toMatchObject({ checked: 0 });
  const row = await env.DB.prepare("select rowid as at from runs where id = ?").bind(id).first<{ at: number }>();
  expect(await repairRuns(env, `rows:${Number(row?.at) - 1}`, Date.now())).toMatchObject({ indexed: 1 });
  await takeBack([id]);
  expect(await repair(of)).toMatchObject({ restored: 1 });
  expect(await seen(of, id)).toEqual(before);
});

test("only a holder of the secret can repair, and a place that no part returned is refused", async () => {
  const send = async (token: string, after: string) => {
    const url = `http://platform.test${BACKUP_PATH}/repair?after=${encodeURIComponent(after)}`;
    return await exports.default.fetch(url, { method: "POST", headers: { authorization: `Bearer ${token}` } });
  };
  expect((await send("rk_guessed", folderOf(api.scope))).status).toBe(404);
  const refused = await send(operatorToken(env), "elsewhere");
  expect([refused.status, await refused.json()]).toMatchObject([400, { error: { param: "after" } }]);
  const { id } = await api.finish(request());
  const part = await send(operatorToken(env), folderOf(api.scope));
  expect(RepairedPage.parse(await part.json())).toMatchObject({ checked: 1, next: runIndexKey(api.scope, id) });
});
