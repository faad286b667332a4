/** The steps of an update as engines of several ages are asked for them: real requests, and what they then serve. */
import { afterAll, expect, test } from "vitest";
import { checkEngine } from "../../../src/clients/engine-probe.ts";
import { FleetUpdate, type UpdateMode } from "../../../src/contract/fleet.ts";
import type { WeightOrder } from "../../../src/runtime/contract/fleet-wire.ts";
import { change } from "../../../src/runtime/fleet/engines.ts";
import { type FleetState, newFleet, setReplicas } from "../../../src/runtime/fleet/state.ts";
import { isLabelOf } from "../../../src/runtime/fleet/weights.ts";
import { type FakeVllm, startFakeVllm } from "../../fakes/fake-vllm.ts";
import type { Era } from "../../fakes/vllm-routes.ts";

const ERAS: readonly Era[] = ["a", "b", "c", "d", "e", "prime_rl"];
const MODES: readonly UpdateMode[] = ["lora_versioned", "lora_in_place", "reload", "transfer", "prime_rl"];
/** Those that cannot be updated so, and what the replica is then shown with. */
const UNFIT: Readonly<Record<string, RegExp>> = {
  "lora_in_place prime_rl": /no POST \/reset_prefix_cache/,
  "reload prime_rl": /\/collective_rpc answered 404/,
  "transfer a": /\/init_weight_transfer_engine answered 404/,
  "transfer prime_rl": /its mode is prime_rl/,
};
const ORDER: WeightOrder = {
  ...{ scope: { orgId: "o", projectId: "p" }, fleet_id: "fl_a", run_id: "run_a", generation: 0, version: 1, epoch: 1 },
  ...{ location: "/weights/1", label: null, transfer: { names: [] } },
};

const engines: FakeVllm[] = [];
afterAll(() => Promise.all(engines.map((engine) => engine.stop())));

function fleetOf(mode: UpdateMode, names: readonly string[], by_replica: object): FleetState {
  const update = FleetUpdate.parse({ mode, init_info: { by_replica } });
  const settings = names.map((name) => ({ id: name, name, max_concurrent: 1, draining: false, address: name }));
  return setReplicas(newFleet(update), update, settings, 0);
}

async function load(mode: UpdateMode, state: FleetState, era: Era) {
  const fake = await startFakeVllm({ era });
  engines.push(fake);
  fake.trainerSends("/weights/1");
  const { base_url } = fake;
  const at = { name: "one", base_url, api_key: null, control_url: null, control_key: null };
  const engine = { ...at, send: (url: URL, init: RequestInit) => fetch(url, init) };
  const replica = state.replicas["one"];
  if (replica === undefined) throw new Error("no such replica");
  const loaded = await change(engine, state, replica, { do: "load", order: ORDER });
  const check = await checkEngine(engine);
  const resumed = await change(engine, state, replica, { do: "resume" });
  return { fake, loaded, resumed, said: check.kind === "alive" ? check.weights : null, mode };
}

test("each age of engine gets the weights of each mode that it can be updated by, and says why it cannot", async () => {
  const pairs = MODES.flatMap((mode) => ERAS.map((era) => ({ mode, era })));
  await Promise.all(
    pairs.map(async ({ mode, era }) => {
      const { fake, loaded, resumed, said } = await load(mode, fleetOf(mode, ["one"], {}), era);
      const why = mode === "prime_rl" && era !== "prime_rl" ? /it is not/ : UNFIT[`${mode} ${era}`];
      expect([mode, era, loaded.ok], loaded.message).toEqual([mode, era, why === undefined]);
      expect(loaded.message).toMatch(why ?? /^$/);
      if (mode !== "lora_in_place") expect([mode, era, resumed.ok]).toEqual([mode, era, true]);
      expect(fake.paused).toBeNull();
      if (why !== undefined) return expect(fake.weights).toBe("v0");
      const lora = mode.startsWith("lora");
      expect(lora ? [...fake.adapters.values()] : [fake.weights]).toEqual(["/weights/1"]);
      if (era === "e" && !lora) expect(isLabelOf(said, ORDER)).toBe(true);
    }),
  );
});

test("several replicas of one transfer group are not begun: each would wait for the others", async () => {
  const { loaded, fake } = await load("transfer", fleetOf("transfer", ["one", "two"], { two: {} }), "e");
  expect(loaded).toMatchObject({ ok: false, message: expect.stringContaining("by_replica has no member for it") });
  expect(fake.requests.filter((request) => request.includes("weight"))).toEqual(["GET /weight_info"]);
  const apart = await load("transfer", fleetOf("transfer", ["one", "two"], { one: {}, two: {} }), "e");
  expect(apart.loaded.ok).toBe(true);
});
