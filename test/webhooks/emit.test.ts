/** The events of a run when it is killed, and their cost if nothing receives them. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test, vi } from "vitest";
import { AccountObject } from "../../src/billing/object.ts";
import { ledgerObject } from "../../src/billing/rpc.ts";
import { PROCESS_PACE } from "../../src/kernel/kit/request-pace.ts";
import { emitEvents, emitOrganizationEvents } from "../../src/kernel/kit/slice-hooks.ts";
import { Subrequests } from "../../src/kernel/kit/subrequests.ts";
import { admit } from "../accounts/admit.ts";
import { endsOf, orderOf } from "../billing/ledger/booking.ts";
import { inside, openPlatform, type TestApi } from "../kernel/platform.ts";
import { questions, RIGHT } from "../kernel/rows.ts";
import { script } from "../kernel/script.ts";
import { eventOf, type Listening, listen } from "./listening.ts";

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

const typesOf = ({ got }: Listening) => got.map(({ body }) => JSON.parse(body).type);

test("an event costs the requests of its organisation as often as endpoints receive it", async () => {
  const own = await openPlatform();
  for (const events of [["run.*"], ["run.*"], ["batch.ready"]]) await listen(own, { events });
  const charge = vi.spyOn(PROCESS_PACE, "charge");
  await emitEvents(env, own.scope, [eventOf("run_a", 1)]);
  const charged = charge.mock.calls.filter(([org]) => org === own.scope.orgId);
  charge.mockRestore();
  expect(charged).toHaveLength(2);
});

test("a run's event survives a kill before it is sent and one after it, and is delivered once", async () => {
  const one = await listen(api, { events: ["run.*"] });
  await one.in(() => undefined);
  const asked = { environment: "gsm8k", dataset: questions(2), model: script(RIGHT), name: "nightly" };
  const { id, counts } = await api.finish({ ...asked, metadata: { sha: "0d1a26e6" } });
  // The state after the write of the run's end; then the object dies.
  const untold = () =>
    api.inRun(id, ({ now }, { storage }) => {
      storage.sql.exec(
        'insert or replace into announcements (id, event, data, at) values (9001, \'run.completed\', \'{"status":"completed","error":null}\', ?)',
        now(),
      );
    });
  const told = () =>
    api.inRun(
      id,
      (_, { storage }) => storage.sql.exec<{ n: number }>("select count(*) as n from announcements").one().n,
    );
  for (let time = 0; time < 2; time += 1) {
    await untold();
    await api.inRun(id, (_, state) => state.abort("killed")).catch(() => undefined);
    await api.inRun(id, (object) => object.alarm());
    expect(await told()).toBe(0);
  }
  await one.run();
  const ids = one.got.map(({ headers }) => headers.get("webhook-id"));
  expect(ids.filter((msg) => msg?.includes("_9001_"))).toHaveLength(1);
  expect(typesOf(one).every((type) => type === "run.completed")).toBe(true);
  const body = JSON.parse(one.got[0]?.body ?? "");
  expect(body.data).toEqual({
    ...{ run_id: id, kind: "eval", status: "completed", error: null, name: "nightly", metadata: { sha: "0d1a26e6" } },
    ...{ counts, reward: { mean: 1, ci95: [1, 1] }, url: `http://platform.test/v1/runs/${id}` },
  });
  // The counts of an earlier end are not stored, so they are null.
  const late = one.got.find(({ headers }) => headers.get("webhook-id")?.includes("_9001_"));
  expect(JSON.parse(late?.body ?? "").data).toMatchObject({ status: "completed", counts: null, reward: null });
  expect(body.id.startsWith(`evt_${id.slice(4)}_`)).toBe(true);
});

test("if nothing receives an event, it costs one look-up of the list every few seconds, and no call", async () => {
  const { scope } = await openPlatform();
  const counted = new Subrequests();
  for (let n = 0; n < 50; n += 1) await emitEvents(env, scope, [eventOf("e", n)], counted);
  expect(counted.count).toBe(1);
});

test("a budget that a run uses up is reported to its project's endpoints, once for each threshold", async () => {
  const paying = await openPlatform();
  const { orgId, projectId } = paying.scope;
  const one = await listen(paying);
  await one.in(() => undefined);
  const insert = env.DB.prepare("insert into budgets values (?, ?, 'project', ?, 100, 1, 1)");
  await insert.bind(`bud_${projectId}`, orgId, projectId).run();
  const books = ledgerObject(env, orgId);
  await books.changed();
  const order = orderOf({ id: orgId }, "run_1", endsOf("run_1", 1, [85]), 0);
  await books.settle({ ...order, run: { ...order.run, scope: paying.scope } });
  for (let time = 0; time < 2; time += 1) {
    await inside(env.ACCOUNT.getByName(`org/${orgId}`), AccountObject, (object) => object.alarm());
  }
  await one.run();
  expect(typesOf(one)).toEqual(["budget.threshold", "budget.threshold"]);
  expect(one.got.map(({ body }) => JSON.parse(body).data)).toMatchObject([
    { budget_id: `bud_${projectId}`, target_kind: "project", target_id: projectId, percent: 50, limit_micros: 100 },
    { percent: 80, spent_micros: 85 },
  ]);
});

test("events of the organisation reach endpoints that name them, which only owners may create", async () => {
  const refused = await api.post("/v1/webhook-endpoints", { url: "https://hooks.example/in", events: ["budget.*"] });
  expect([refused.status, await refused.json()]).toMatchObject([403, { error: { param: "events" } }]);
  const owner = await admit(api.scope, { project_id: null });
  const headers = { authorization: `Bearer ${owner}`, "rollcall-project": api.scope.projectId };
  const named = await listen(api, { events: ["budget.*"] }, headers);
  const all = await listen(api);
  const event = { ...eventOf("o", 1), type: "budget.threshold", subject: "bud_1" };
  for (const one of [named, all]) await one.in(() => undefined);
  await emitOrganizationEvents(env, api.scope.orgId, [event]);
  for (const one of [named, all]) await one.run();
  expect([named.got.length, all.got.length]).toEqual([1, 0]);
});
