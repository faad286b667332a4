/** The objects of a project's slices, in the order in which its deletion frees them. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { fleetObject } from "../../src/fleets/rpc.ts";
import { objectsOfProject } from "../../src/kernel/kit/slice-hooks.ts";
import { Subrequests } from "../../src/kernel/kit/subrequests.ts";
import { webhookObject } from "../../src/webhooks/rpc.ts";
import { insertFleet } from "../fleets/rows.ts";
import { openPlatform } from "../kernel/platform.ts";

test("fleets are freed before the webhooks that get their events, and each object is freed in its turn", async () => {
  const { scope, post } = await openPlatform();
  const { fleet } = await insertFleet(scope);
  await insertFleet(scope, { name: "other" });
  const reply = await post("/v1/webhook-endpoints", { url: `${env.MODEL_URL}/hook` });
  const { id: webhook_id } = await reply.json<{ id: string }>();
  const of = { scope, fleet_id: fleet.id };
  await fleetObject(env, scope, fleet.id).changed(of);
  const event = { id: "evt_1", type: "replica.down", at: 0, subject: fleet.id, data: {} };
  await webhookObject(env, scope, webhook_id).enqueue({ scope, webhook_id }, [event]);
  const page = (from: number, limit = 100) => objectsOfProject(env, scope, { from, limit }, new Subrequests());
  expect(await page(1, 1)).toHaveLength(1);
  const fleets = await page(0);
  expect(fleets).toHaveLength(2);
  expect(await Promise.all(fleets.map((free) => free()))).toEqual([true, true]);
  const ask = { ...of, run_id: "run_1", rollout_id: "ro_1", turn: 0, model: "m", trains: false, wait_ms: 1 };
  expect(await fleetObject(env, scope, fleet.id).begin({ ...ask, last_replica: null })).toMatchObject({ kind: "gone" });
  const webhooks = await page(2);
  expect(webhooks).toHaveLength(1);
  const told = async () => (await webhookObject(env, scope, webhook_id).deliveries({ limit: 9 }))?.data.length;
  expect(await told()).toBe(1);
  expect(await Promise.all(webhooks.map((free) => free()))).toEqual([true]);
  expect(await told()).toBe(0);
  // The queue of its agents is the last.
  expect(await page(3)).toHaveLength(1);
  expect(await page(4)).toEqual([]);
});
