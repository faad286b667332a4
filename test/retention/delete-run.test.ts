/** The deletion of a run: hidden at once, then taken away whole, whatever is cut short meanwhile. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { ApiError } from "../../src/contract/api-error.ts";
import { hostName, runFolder, runObject } from "../../src/kernel/kit/names.ts";
import { alarm, deletion, done, expectGone, inProject, keysUnder, kill, remove } from "../kernel/deleting.ts";
import { acceptedOnly } from "../kernel/hand-made.ts";
import { type Door, openPlatform, requestsOf, rolloutAt } from "../kernel/platform.ts";
import { questions, RIGHT } from "../kernel/rows.ts";
import { script } from "../kernel/script.ts";

let door: Door;
beforeAll(async () => {
  door = await openPlatform();
});

function hostsOf(runId: string, count: number): DurableObjectStub[] {
  return Array.from({ length: count }, (_, index) => env.ROLLOUT.getByName(hostName(door.scope, runId, index + 1)));
}

async function codeOf(path: string, init?: RequestInit): Promise<string> {
  const reply = await door.ask(path, init);
  expect(reply.status, path).toBe(404);
  return ApiError.parse(await reply.json()).error.code;
}

const ended = () => door.finish({ environment: "gsm8k", dataset: questions(8), model: script(RIGHT) });

test("a run that is deleted is nobody's from the first moment, and asking again gives the same deletion", async () => {
  const { id } = await ended();
  const first = await remove(door, id);
  expect(first).toMatchObject({ kind: "run", target_id: id, finished_at: null, recoverable_until: null });
  const paths = ["", "/results", "/export", "/events", "/metrics", "/audit"].map((what) => `/v1/runs/${id}${what}`);
  for (const path of [...paths, `/v1/rollouts/${rolloutAt(id)}`]) expect(await codeOf(path)).toBe("not_found");
  for (const what of ["cancel", "pause", "retry", "rescore"]) {
    const init = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
    expect(await codeOf(`/v1/runs/${id}/${what}`, init)).toBe("not_found");
  }
  const list = await (await door.ask("/v1/runs")).json<{ data: { id: string }[] }>();
  expect(list.data.map((run) => run.id)).not.toContain(id);
  expect((await remove(door, id)).id).toBe(first.id);
  const all = await (await door.ask("/v1/deletions")).json<{ data: { id: string }[] }>();
  expect(all.data.map((one) => one.id)).toContain(first.id);
});

test("nothing of a deleted run is left, and the receipt counts what went", async () => {
  const { id } = await ended();
  const { id: job } = await remove(door, id);
  const before = await env.STORE.list({ prefix: runFolder(door.scope, id) });
  const receipt = await done(door, job);
  await expectGone(door, id, hostsOf(id, 3));
  const bytes = before.objects.reduce((sum, { size }) => sum + size, 0);
  // Its row, and that of the endpoint that came with it; two objects of rollouts and its own.
  expect(receipt.counts).toMatchObject({ runs: 1, rows: 2, files: before.objects.length, bytes });
  expect(receipt.counts["objects"]).toBeGreaterThan(1);
  expect(receipt.recoverable_until).toBe((receipt.finished_at ?? 0) + 30 * 24 * 3600);
  expect((await remove(door, id)).id).toBe(job);
});

test("rollouts in flight end once, as cancelled, before anything of the run is taken away", async () => {
  const hangs = [{ fault: { kind: "hang" } }] as const;
  const request = { environment: "gsm8k", dataset: questions(4), model: script(hangs) };
  const { id } = await door.start(request);
  await requestsOf(request.model, 4);
  // Another test may have set it ahead: this one's job would not be due.
  await inProject(door, (project) => {
    project.now = () => Date.now();
  });
  const { id: job } = await remove(door, id);
  const outcomes = () =>
    door.inRun(id, (_, { storage }) =>
      storage.sql.exec("select outcome, count(*) as n from rollouts group by outcome").toArray(),
    );
  // Until its rollouts have ended it is asked again and again; then it is quiet for a while.
  await expect.poll(outcomes, { timeout: 30_000 }).toEqual([{ outcome: "cancelled", n: 4 }]);
  await alarm(door, 60_000);
  // An alarm of its own may be under way still.
  await expect.poll(() => deletion(door, job)).toMatchObject({ state: "running", counts: {} });
  await done(door, job);
  await expectGone(door, id, hostsOf(id, 1));
  expect((await requestsOf(request.model)).length).toBe(4);
});

test("a deletion that is killed after every slice goes on and counts each thing once", async () => {
  const { id } = await ended();
  const prefix = runFolder(door.scope, id);
  for (let file = 0; file < 5; file += 1) await env.STORE.put(`${prefix}more/${file}`, "12345678");
  const before = (await env.STORE.list({ prefix })).objects;
  const { id: job } = await remove(door, id);
  const receipt = await done(door, job, () => kill(door));
  await expectGone(door, id, hostsOf(id, 3));
  const bytes = before.reduce((sum, { size }) => sum + size, 0);
  expect(receipt.counts).toMatchObject({ runs: 1, rows: 2, files: before.length, bytes });
});

test("1,100 files go a thousand a slice, each counted once though a slice is cut off before and after it deletes", async () => {
  const { id } = await ended();
  const prefix = runFolder(door.scope, id);
  const names = Array.from({ length: 1100 }, (_, index) => `${prefix}many/${String(index).padStart(4, "0")}`);
  const own = (await keysUnder(prefix)).length;
  for (let at = 0; at < names.length; at += 6) {
    await Promise.all(names.slice(at, at + 6).map((name) => env.STORE.put(name, "x")));
  }
  const { id: job } = await remove(door, id);
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
    const receipt = await done(door, job);
    expect(receipt.counts["files"]).toBe(1100 + own);
  } finally {
    env.STORE = STORE;
  }
  // One slice is cut off twice, and done; the other is done.
  expect(deletes).toBe(4);
  await expectGone(door, id, hostsOf(id, 3));
});

test("a run whose object was never created is not begun by a creation that comes after its deletion", async () => {
  const { id: template } = await ended();
  const row = await acceptedOnly(door, template);
  const { id: job } = await remove(door, row.id);
  await done(door, job);
  await runObject(env, door.scope, row.id).create(row.spec);
  await expectGone(door, row.id);
});

test("a run that another one still scores is not deleted, and the refusal names that one", async () => {
  const { id } = await ended();
  const judge = { environment: "gsm8k" };
  const made = await (await door.post(`/v1/runs/${id}/rescore`, judge)).json<{ id: string }>();
  await door.ended(made.id);
  // As the row stands while that run goes on, and its object with it.
  const { id: going } = await acceptedOnly(door, id, { rescore: { run_id: id } });
  const refused = await door.ask(`/v1/runs/${id}`, { method: "DELETE" });
  expect(refused.status).toBe(409);
  expect(ApiError.parse(await refused.json()).error).toMatchObject({
    code: "conflict",
    message: expect.stringContaining(going),
  });
  await remove(door, going);
  await env.DB.prepare("update runs set status = 'cancelled' where id = ?").bind(going).run();
  await remove(door, id);
  expect((await door.ask(`/v1/runs/${made.id}/results`)).status).toBe(200);
});

test("an endpoint that came with a run stays as long as a run that was made of it names it", async () => {
  const { id, endpoint } = await ended();
  const scored = await (await door.post(`/v1/runs/${id}/rescore`, {})).json<{ id: string }>();
  await door.ended(scored.id);
  await done(door, (await remove(door, id)).id);
  expect(await door.run(scored.id)).toMatchObject({ endpoint: { id: endpoint?.id } });
  await done(door, (await remove(door, scored.id)).id);
  const left = await env.DB.prepare("select count(*) as n from endpoints where id = ?").bind(endpoint?.id).first("n");
  expect(left).toBe(0);
});

test("a deletion that was written and of which nobody heard is begun by whoever reads it", async () => {
  const { id } = await ended();
  const { PROJECT } = env;
  env.PROJECT = new Proxy(PROJECT, {
    get: () => () => {
      throw new Error("the process ends here");
    },
  });
  const cut = await door.ask(`/v1/runs/${id}`, { method: "DELETE" });
  env.PROJECT = PROJECT;
  expect(cut.status).toBe(500);
  const row = await env.DB.prepare("select id from deletions where target_id = ?").bind(id).first<{ id: string }>();
  await done(door, row?.id ?? "");
  await expectGone(door, id);
});

test("an object that nobody asked to delete anything writes nothing", async () => {
  const other = await openPlatform();
  await alarm(other);
  const kept = await inProject(other, (_, { storage }) => [...storage.kv.list()].length);
  expect(kept).toBe(0);
});
