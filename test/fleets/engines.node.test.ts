/** The steps of an update with engines of several ages: real requests, and what the engines serve afterwards. */
import { afterAll, expect, test } from "vitest";
import { FleetUpdate, type UpdateMode } from "../../src/contract/fleet.ts";
import { checkEngine } from "../../src/fleets/engine-probe.ts";
import { change } from "../../src/fleets/engines.ts";
import { newFleet } from "../../src/fleets/state.ts";
import { isLabelOf } from "../../src/fleets/weights.ts";
import type { WeightOrder } from "../../src/kernel/messages/run-fleet.ts";
import { type FakeVllm, startFakeVllm } from "../fakes/fake-vllm.ts";
import type { Era } from "../fakes/vllm-routes.ts";

const ERAS: readonly Era[] = ["a", "b", "c", "prime_rl"];
const MODES: readonly UpdateMode[] = ["lora_versioned", "reload", "prime_rl"];
const ORDER: WeightOrder = {
  ...{ scope: { orgId: "o", projectId: "p" }, fleet_id: "fl_a", run_id: "run_a", generation: 0, version: 1, epoch: 1 },
  ...{ location: "/weights/1", label: null },
};

/** The reason shown for a replica whose engine does not support the mode. */
const UNFIT: Readonly<Record<string, RegExp>> = {
  reload: /\/collective_rpc answered 404/,
  prime_rl: /it is not prime-rl's own server/,
};

const engines: FakeVllm[] = [];
afterAll(() => Promise.all(engines.map((engine) => engine.stop())));

async function load(mode: UpdateMode, era: Era) {
  const fake = await startFakeVllm({ era });
  engines.push(fake);
  const state = newFleet(FleetUpdate.parse({ mode }));
  const { base_url } = fake;
  const at = { name: "one", base_url, api_key: null, control_url: null, control_key: null };
  const engine = { ...at, send: (url: URL, init: RequestInit) => fetch(url, init) };
  const loaded = await change(engine, state, { do: "load", order: ORDER });
  const check = await checkEngine(engine);
  const resumed = await change(engine, state, { do: "resume" });
  return { fake, loaded, resumed, said: check.kind === "alive" ? check.weights : null };
}

test("each age of engine gets the weights in each mode it supports, and reports why others fail", async () => {
  const pairs = MODES.flatMap((mode) => ERAS.map((era) => ({ mode, era })));
  await Promise.all(
    pairs.map(async ({ mode, era }) => {
      const { fake, loaded, resumed, said } = await load(mode, era);
      const why = mode === "lora_versioned" || (mode === "prime_rl") === (era === "prime_rl") ? undefined : UNFIT[mode];
      expect([mode, era, loaded.ok], loaded.message).toEqual([mode, era, why === undefined]);
      expect(loaded.message).toMatch(why ?? /^$/);
      expect([mode, era, resumed.ok]).toEqual([mode, era, true]);
      expect(fake.paused).toBeNull();
      if (why !== undefined) return expect(fake.weights).toBe("v0");
      const lora = mode === "lora_versioned";
      expect(lora ? [...fake.adapters.values()] : [fake.weights]).toEqual(["/weights/1"]);
      if (era === "c" && !lora) expect(isLabelOf(said, ORDER)).toBe(true);
    }),
  );
});
