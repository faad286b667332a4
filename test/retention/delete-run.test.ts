/** The deletion of a run: it is hidden immediately and then deleted completely, whatever is interrupted. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { ApiError } from "../../src/contract/api-error.ts";
import { runFolder, runObject, shardName } from "../../src/kernel/kit/names.ts";
import { alarm, deletion, done, expectGone, inProject, keysUnder, kill, remove } from "../kernel/deleting.ts";
import { acceptedOnly } from "../kernel/hand-made.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../kernel/platform.ts";
import { questions, RIGHT } from "../kernel/rows.ts";
import { script } from "../kernel/script.ts";

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

function shardsOf(runId: string, count: number): DurableObjectStub[] {
  return Array.from({ length: count }, (_, index) => env.ROLLOUT.getByName(shardName(api.scope, runId, index + 1)));
}

async function codeOf(path: string, init?: RequestInit): Promise<string> {
  const reply = await api.ask(path, init);
  expect(reply.status, path).toBe(404);
  return ApiError.parse(await reply.json()).error.code;
}

const ended = () => api.finish({ environment: "gsm8k", dataset: questions(8), model: script(RIGHT) });

test("a deleted run is not found from the first moment, and a repeat returns the same deletion", async () => {
  const { id } = await ended();
  const first = await remove(api, id);
  expect(first).toMatchObject({ kind: "run", target_id: id, finished_at: null, recoverable_until: null });
  const paths = ["", "/results", "/export", "/events", "/metrics", "/audit"].map((what) => `/v1/runs/${id}${what}`);
  for (const path of [...paths, `/v1/rollouts/${rolloutAt(id)}`]) expect(await codeOf(path)).toBe("not_found");
  for (const what of ["cancel", "pause", "retry", "rescore"]) {
    const init = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
    expect(await codeOf(`/v1/runs/${id}/${what}`, init)).toBe("not_found");
  }
  const list = await (await api.ask("/v1/runs")).json<{ data: { id: string }[] }>();
  expect(list.data.map((run) => run.id)).not.toContain(id);
  expect((await remove(api, id)).id).toBe(first.id);
  const all = await (await api.ask("/v1/deletions")).json<{ data: { id: string }[] }>();
  expect(all.data.map((one) => one.id)).toContain(first.id);
});

test("nothing of a deleted run is left, and the receipt counts what was deleted", async () => {
  const { id } = await ended();
  const { id: job } = await remove(api, id);
  const before = await env.STORE.list({ prefix: runFolder(api.scope, id) });
  const receipt = await done(api, job);
  await expectGone(api, id, shardsOf(id, 3));
  const bytes = before.objects.reduce((sum, { size }) => sum + size, 0);
  // Rows: the run and the endpoint that was created with it. Objects: two shards and the run object.
  expect(receipt.counts).toMatchObject({ runs: 1, rows: 2, files: before.objects.length, bytes });
  expect(receipt.counts["objects"]).toBeGreaterThan(1);
  expect(receipt.recoverable_until).toBe((receipt.finished_at ?? 0) + 30 * 24 * 3600);
  expect((await remove(api, id)).id).toBe(job);
});

test("rollouts in flight end once, as cancelled, before anything of the run is deleted", async () => {
  const hangs = [{ fault: { kind: "hang" } }] as const;
  const request = { environment: "gsm8k", dataset: questions(4), model: script(hangs) };
  const { id } = await api.start(request);
  await requestsOf(request.model, 4);
  // Another test may have moved the clock ahead, so that this job would not be due.
  await inProject(api, (project) => {
    project.now = () => Date.now();
  });
  const { id: job } = await remove(api, id);
  const outcomes = () =>
    api.inRun(id, (_, { storage }) =>
      storage.sql.exec("select outcome, count(*) as n from rollouts group by outcome").toArray(),
    );
  // The job checks again and again until the rollouts have ended, and then waits until nothing can be in flight.
  await expect.poll(outcomes).toEqual([{ outcome: "cancelled", n: 4 }]);
  await alarm(api, 60_000);
  // Its own alarm may still be running.
  await expect.poll(() => deletion(api, job)).toMatchObject({ state: "running", counts: {} });
  await done(api, job);
  await expectGone(api, id, shardsOf(id, 1));
  expect((await requestsOf(request.model)).length).toBe(4);
});

test("a deletion that is killed after every slice continues and counts each thing once", async () => {
  const { id } = await ended();
  const prefix = runFolder(api.scope, id);
  for (let file = 0; file < 5; file += 1) await env.STORE.put(`${prefix}more/${file}`, "12345678");
  const before = (await env.STORE.list({ prefix })).objects;
  const { id: job } = await remove(api, id);
  const receipt = await done(api, job, () => kill(api));
  await expectGone(api, id, shardsOf(id, 3));
  const bytes = before.reduce((sum, { size }) => sum + size, 0);
  expect(receipt.counts).toMatchObject({ runs: 1, rows: 2, files: before.length, bytes });
});

test("1,100 files are deleted a thousand per slice, each counted once, despite interrupted slices", async () => {
  const { id } = await ended();
  const prefix = runFolder(api.scope, id);
  const names = Array.from({ length: 1100 }, (_, index) => `${prefix}many/${String(index).padStart(4, "0")}`);
  const own = (await keysUnder(prefix)).length;
  for (let at = 0; at < names.length; at += 6) {
    await Promise.all(names.slice(at, at + 6).map((name) => env.STORE.put(name, "x")));
  }
  const { id: job } = await remove(api, id);
  const { STORE } = env;
  let deletes = 0;
  const cut = new Proxy(STORE, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name !== "delete") return value.bind(target);
      return async (keys: string[]) => {
        // Objects of other files use the store meanwhile.
        if (![keys].flat().every((key) => key.startsWith(prefix))) return await target.delete(keys);
        deletes += 1;
        expect(keys.length).toBeLessThanOrEqual(1000);
        if (deletes === 1) throw new Error("cut off before it deletes");
        await target.delete(keys);
        if (deletes === 2) throw new Error("cut off after it has deleted");
      };
    },
  });
  env.STORE = cut;
  try {
    const receipt = await done(api, job);
    expect(receipt.counts["files"]).toBe(1100 + own);
  } finally {
    env.STORE = STORE;
  }
  // One slice is interrupted twice and then completed; the other is completed at once.
  expect(deletes).toBe(4);
  await expectGone(api, id, shardsOf(id, 3));
});

test("a late creation does not create a run whose object never existed and that was deleted", async () => {
  const { id: template } = await ended();
  const row = await acceptedOnly(api, template);
  const { id: job } = await remove(api, row.id);
  await done(api, job);
  await runObject(env, api.scope, row.id).create(row.spec);
  await expectGone(api, row.id);
});

test("a run that another run still rescores is not deleted, and the refusal names that run", async () => {
  const { id } = await ended();
  const judge = { environment: "gsm8k" };
  const made = await (await api.post(`/v1/runs/${id}/rescore`, judge)).json<{ id: string }>();
  await api.ended(made.id);
  // The row while that run is unfinished, with its object.
  const { id: going } = await acceptedOnly(api, id, { rescore: { run_id: id } });
  const refused = await api.ask(`/v1/runs/${id}`, { method: "DELETE" });
  expect(refused.status).toBe(409);
  expect(ApiError.parse(await refused.json()).error).toMatchObject({
    code: "conflict",
    message: expect.stringContaining(going),
  });
  await remove(api, going);
  await env.DB.prepare("update runs set status = 'cancelled' where id = ?").bind(going).run();
  await remove(api, id);
  expect((await api.ask(`/v1/runs/${made.id}/results`)).status).toBe(200);
});

test("an endpoint that was created with a run stays as long as a run derived from that run uses it", async () => {
  const { id, endpoint } = await ended();
  const scored = await (await api.post(`/v1/runs/${id}/rescore`, {})).json<{ id: string }>();
  await api.ended(scored.id);
  await done(api, (await remove(api, id)).id);
  expect(await api.run(scored.id)).toMatchObject({ endpoint: { id: endpoint?.id } });
  await done(api, (await remove(api, scored.id)).id);
  const left = await env.DB.prepare("select count(*) as n from endpoints where id = ?").bind(endpoint?.id).first("n");
  expect(left).toBe(0);
});

test("reading a deletion starts it if its object was never notified", async () => {
  const { id } = await ended();
  const { PROJECT } = env;
  env.PROJECT = new Proxy(PROJECT, {
    get: () => () => {
      throw new Error("the process ends here");
    },
  });
  const cut = await api.ask(`/v1/runs/${id}`, { method: "DELETE" });
  env.PROJECT = PROJECT;
  expect(cut.status).toBe(500);
  const row = await env.DB.prepare("select id from deletions where target_id = ?").bind(id).first<{ id: string }>();
  await done(api, row?.id ?? "");
  await expectGone(api, id);
});

test("an object without any deletion writes nothing", async () => {
  const other = await openPlatform();
  await alarm(other);
  const kept = await inProject(other, (_, { storage }) => [...storage.kv.list()].length);
  expect(kept).toBe(0);
});
