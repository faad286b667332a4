/** A run that names a fleet instead of an endpoint: what is refused, and what is stored. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { RunView } from "../../src/contract/run.ts";
import { fleets } from "../../src/fleets/tables.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { getRun, insertRun } from "../../src/kernel/db/runs.ts";
import { inProject } from "../../src/kernel/db/scoped.ts";
import { endpointRow, runRow } from "../kernel/http/run-rows.ts";
import { openPlatform, type TestApi } from "../kernel/platform.ts";
import { questions } from "../kernel/rows.ts";
import { fleetRow, insertFleet } from "./rows.ts";

const one = { environment: "gsm8k", dataset: questions(1), model: "m" };

async function errorOf(api: TestApi, path: string, body: object): Promise<unknown> {
  const reply = await api.post(path, body);
  return { status: reply.status, ...(await reply.json<{ error: object }>()) };
}

test("a run on a fleet stores its id and shows its name, and a fork of its spec cannot name another", async () => {
  const api = await openPlatform();
  const prices = { input_per_mtok_micros: 1, output_per_mtok_micros: 2 };
  const { fleet } = await insertFleet(api.scope, { location_hint: "weur", prices });
  const asked = { ...one, fleet: "trained", max_cost_micros: 1_000_000, sampling: { max_tokens: 8 } };
  const reply = await api.post("/v1/runs", asked);
  expect(reply.status).toBe(202);
  const run = RunView.parse(await reply.json());
  expect(run).toMatchObject({ endpoint: null, fleet: { id: fleet.id, name: "trained" } });
  const record = await getRun(databaseOf(env), api.scope, run.id);
  expect(record?.run.spec).toMatchObject({
    endpoint_id: fleet.id,
    fleet: { id: fleet.id, location_hint: "weur" },
    money: { policy: prices },
  });
  await api.post(`/v1/runs/${run.id}/cancel`, {});
  const named = await api.post("/v1/runs/preview", { ...one, fleet: fleet.id });
  expect(named.status).toBe(200);
});

test("a run names an endpoint or a fleet that exists and has a replica", async () => {
  const api = await openPlatform();
  const empty = fleetRow({ name: "empty" });
  await inProject(databaseOf(env), api.scope).insert(fleets, empty);
  const refused = (body: object, path = "/v1/runs") => errorOf(api, path, { ...one, ...body });
  const endpoint = { base_url: env.MODEL_URL };
  expect(await refused({ endpoint, fleet: "empty" })).toMatchObject({ status: 400, error: { param: "fleet" } });
  expect(await refused({})).toMatchObject({
    status: 400,
    error: { param: "endpoint", message: expect.stringContaining("unless fleet is set") },
  });
  expect(await refused({ fleet: "nobody" })).toMatchObject({ status: 404, error: { param: "fleet" } });
  expect(await refused({ fleet: "empty" })).toMatchObject({
    status: 409,
    error: { code: "conflict", param: "fleet", message: expect.stringContaining(`/v1/fleets/${empty.id}/replicas`) },
  });
  expect(await refused({ fleet: "empty" }, "/v1/runs/preview")).toMatchObject({ status: 409 });
  const unpriced = await insertFleet(api.scope);
  const capped = { fleet: unpriced.fleet.id, max_cost_micros: 1000, sampling: { max_tokens: 8 } };
  expect(await refused(capped)).toMatchObject({ error: { code: "prices_required", param: "fleet" } });
});

test("of two concurrent training runs for one exclusive fleet only one is written", async () => {
  const { scope } = await openPlatform();
  const { fleet } = await insertFleet(scope);
  const training = () => runRow(endpointRow({ id: fleet.id }), { kind: "training" });
  const alone = { most: null, alone: fleet.id };
  const runs = [training(), training()];
  const written = await Promise.all(runs.map((run) => insertRun(databaseOf(env), scope, run, null, [], alone)));
  expect(written.toSorted()).toEqual(["inserted", "taken"]);
  // An eval can share the fleet, and so can a training run if weights have their own names.
  const evaluation = runRow(endpointRow({ id: fleet.id }));
  expect(await insertRun(databaseOf(env), scope, evaluation, null)).toBe("inserted");
  expect(await insertRun(databaseOf(env), scope, training(), null)).toBe("inserted");
});
