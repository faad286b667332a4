/** One engine that was attached to its fleet under two names (aliases). */
import { expect, test } from "vitest";
import { FleetUpdate, type UpdateMode } from "../../src/contract/fleet.ts";
import { placesOf } from "../../src/fleets/access.ts";
import { aliasOf } from "../../src/fleets/aliases.ts";
import { standingOf } from "../../src/fleets/served.ts";
import { newFleet, type Settings, setReplicas } from "../../src/fleets/state.ts";
import { World } from "./world.ts";

const GPU = { base_url: "https://gpu.example/v1", control_url: null };
const PLACES = placesOf(GPU);

function settings(id: string, changes: Partial<Settings> = {}): Settings {
  return { id, name: id, max_concurrent: 3, draining: false, address: id, places: PLACES, ...changes };
}

/** Two replicas of a fleet that are one engine, which reports its process and not its weights. */
function oneEngine(mode: UpdateMode): World {
  const world = new World(mode, 2, () => false);
  const [engine] = Object.values(world.engines);
  if (engine !== undefined) world.engines["rp_1"] = engine;
  set(world, [settings("rp_0"), settings("rp_1")]);
  return world;
}

function set(world: World, all: readonly Settings[]): void {
  world.keep(setReplicas(world.state, world.state.update, all, world.now));
}

function shown(world: World): unknown[] {
  return standingOf(world.state, () => 0).replicas.map(({ state, reason }) => [state, reason]);
}

test.each(["reload", "prime_rl"] as const)(
  "a call on one alias gets no version that the other's update has replaced: %s",
  (mode) => {
    const world = oneEngine(mode);
    world.calm();
    for (const version of [1, 2]) {
      world.order(0, version);
      for (let pass = 0; pass < 30; pass += 1) {
        world.now += 2000;
        world.tick();
        world.begin(true);
        world.reach(pass);
        world.reply(pass, false);
        for (const at of world.going.keys()) world.sample(at);
        if (world.going.length > 1) world.end(1);
      }
    }
    world.calm();
    world.judge();
    expect(world.faults).toEqual([]);
    expect(world.told).toBeGreaterThan(0);
  },
);

test("the first replica takes the calls, and the other names it", () => {
  const world = oneEngine("reload");
  world.calm();
  const why = "it is the same engine as rp_0: remove it, or set another address";
  expect(shown(world)).toEqual([
    ["ready", null],
    ["stale", why],
  ]);
  world.order(0, 1);
  world.calm();
  expect(world.leftOver()).toContain("a replica stays stale");
  expect(shown(world)).toEqual([
    ["ready", null],
    ["stale", why],
  ]);
});

test("a replica that moves to another's address does not replace it", () => {
  const update = FleetUpdate.parse({ mode: "reload" });
  const own = placesOf({ ...GPU, base_url: "https://own.example/v1" });
  const before = setReplicas(newFleet(update), update, [settings("a", { places: own }), settings("b")], 0);
  const after = setReplicas(before, update, [settings("a", { address: "moved" }), settings("b")], 1);
  expect(after.replicas).toMatchObject({ a: { twin: "b" }, b: { twin: null } });
});

test("a replica whose alias is removed takes calls only after a restart, since other weights may be loaded", () => {
  const world = oneEngine("reload");
  world.calm();
  world.order(0, 1);
  world.calm();
  set(world, [settings("rp_1")]);
  world.release();
  world.calm();
  expect(shown(world)).toEqual([["stale", "its weights were changed as those of rp_0: restart it"]]);
  world.restart("rp_1", true);
  world.calm();
  expect(shown(world)).toEqual([["ready", null]]);
});

test("a replica whose alias is removed takes calls immediately in a fleet that no run trained on", () => {
  const world = oneEngine("reported");
  world.calm();
  set(world, [settings("rp_1")]);
  world.calm();
  expect(shown(world)).toEqual([["ready", null]]);
});

const elsewhere = "https://other.example/v1";
test.each<[string, UpdateMode, { base_url?: string; control_url?: string }, boolean]>([
  [
    "the same address in capitals, with its port and a slash",
    "reload",
    { base_url: "https://GPU.example:443/v1/" },
    true,
  ],
  ["the same address for adapters of their own names", "lora_versioned", {}, true],
  ["another server", "reload", { base_url: elsewhere }, false],
  ["another path of one gateway", "reload", { base_url: "https://gpu.example/1/v1" }, false],
  [
    "another server, changed where the first is",
    "reload",
    { base_url: elsewhere, control_url: "https://gpu.example" },
    true,
  ],
  [
    "the same, where nothing is believed from there",
    "reported",
    { base_url: elsewhere, control_url: GPU.base_url },
    false,
  ],
])("%s: %s %j is one engine: %j", (_what, mode, other, one) => {
  expect(aliasOf(mode, { places: placesOf({ ...GPU, ...other }) }, [{ name: "a", places: PLACES }]) !== undefined).toBe(
    one,
  );
});
