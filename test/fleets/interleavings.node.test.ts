/** Calls, updates, restarts and crashes in random order: invariants that must always hold. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { RUN, World } from "./world.ts";

/** An event that may happen, with a number that determines its details. */
type Act = (world: World, value: number) => void;

let [generation, version] = [0, 0];
const rp = (world: World, value: number) => `rp_${value % world.count}`;

/** Events that happen all the time. */
const USUAL: readonly Act[] = [
  (world, value) => world.begin(value % 4 !== 0),
  (world, value) => world.holders.begin(value),
  (world, value) => world.holders.begin(value + 1),
  ...[0, 1].map((more) => (world: World, value: number) => world.holders.move(value + more, value === 0)),
  (world, value) => world.sample(value),
  (world, value) => world.end(value),
  (world, value) => {
    world.end(value);
    world.holders.begin(value);
  },
  (world, value) => world.end(value + 1),
  (world) => world.tick(),
  (world, value) => world.reach(value),
  (world, value) => world.reply(value, value === 0),
  ...[1, 2, 3].map(() => (world: World, value: number) => {
    world.tick();
    world.reach(value);
    world.reply(value, false);
  }),
];

const RARE: readonly Act[] = [
  (world) => {
    version += 1;
    world.order(generation, version);
  },
  (world, value) => {
    if (value > 3) return;
    generation += 1;
    version = Math.max(1, version - 1);
    world.order(generation, version);
  },
  (world, value) => {
    if (value % 3 === 0) world.kill();
  },
  (world, value) => {
    if (value % 3 === 0) world.restart(rp(world, value >> 2), value % 2 === 0);
  },
  (world, value) => {
    const engine = world.engines[rp(world, value)];
    if (engine !== undefined) engine.alive = true;
  },
  (world, value) => {
    world.now += value * 2000;
  },
  (world) => world.judge(),
  (world, value) => {
    if (value % 3 === 0) world.holders.kill(value >> 2);
  },
];
const ACTS = [...USUAL, ...USUAL, ...USUAL, ...USUAL, ...USUAL, ...RARE];

const acts = fc.array(fc.tuple(fc.integer({ min: 0, max: ACTS.length - 1 }), fc.integer({ min: 0, max: 23 })), {
  minLength: 100,
  maxLength: 500,
  size: "max",
});

const MODES = ["reload", "lora_versioned", "prime_rl"] as const;

test("no call gets a version that did not sample its tokens, no engine stays paused, and at most half are out", () => {
  let [told, atFreePlaces] = [0, 0];
  fc.assert(
    fc.property(acts, fc.constantFrom(...MODES), fc.integer({ min: 1, max: 5 }), (steps, mode, count) => {
      [generation, version] = [0, 0];
      const world = new World(mode, count, (at) => at % 2 === 0);
      for (const [kind, value] of steps) ACTS[kind]?.(world, value);
      world.calm();
      world.judge();
      told += world.told;
      atFreePlaces += world.holders.atFreePlaces;
      world.faults.push(...world.leftOver());
      if (world.faults.length > 0) throw new Error([...new Set(world.faults)].join("\n"));
    }),
    { numRuns: 200 },
  );
  expect(told).toBeGreaterThan(800);
  expect(atFreePlaces).toBeGreaterThan(100);
});

test("if a run names the location of version 0, calls sampled by an engine's initial weights get no version", () => {
  let told = 0;
  fc.assert(
    fc.property(acts, fc.constantFrom("reload", "prime_rl"), fc.integer({ min: 1, max: 4 }), (steps, mode, count) => {
      [generation, version] = [0, 0];
      const world = new World(mode, count, (at) => at % 2 === 0, true);
      for (const [at, [kind, value]] of steps.entries()) {
        // The run's order arrives some calls later.
        if (at === 20) world.order(0, 0);
        // Every call of the run is for training.
        if (ACTS[kind] === USUAL[0]) world.begin(true);
        else ACTS[kind]?.(world, value);
      }
      world.holders.settle();
      world.judge();
      told += world.told;
      if (world.faults.length > 0) throw new Error([...new Set(world.faults)].join("\n"));
    }),
    { numRuns: 150 },
  );
  expect(told).toBeGreaterThan(300);
});

test("weights of another party are only assigned if it reported them and the server is still the same", () => {
  let told = 0;
  fc.assert(
    fc.property(acts, fc.integer({ min: 1, max: 3 }), (steps, count) => {
      [generation, version] = [0, 0];
      const world = new World("reported", count, () => false);
      for (const [kind, value] of steps) {
        if (kind === 0) {
          const weights = { run_id: RUN, generation, version: Math.max(1, version) };
          const id = rp(world, value);
          world.report(id, "pending", weights);
          world.tick();
          world.report(id, "applied", weights);
        } else ACTS[kind]?.(world, value);
      }
      // Without an order, no generation is known and only versions are compared.
      world.order(generation, Math.max(1, version));
      world.holders.settle();
      world.judge();
      told += world.told;
      if (world.faults.length > 0) throw new Error([...new Set(world.faults)].join("\n"));
    }),
    { numRuns: 150 },
  );
  expect(told).toBeGreaterThan(200);
});

test("if the answer to unloading an adapter is lost, its replica continues to take calls", () => {
  const world = new World("lora_versioned", 1, () => false);
  const seen = new Set<string>();
  for (let [ordered, pass] = [0, 0]; pass < 40; pass += 1) {
    if (pass % 5 === 0 && ordered < 4) world.order(0, ++ordered);
    world.now += 5000;
    world.tick();
    world.reach(0);
    const unloads = [...world.running.values()].some(({ step }) => step.do === "unload");
    // Another version is ordered before the next probe.
    if (unloads) world.order(0, 5);
    world.reply(0, unloads);
    if (pass > 0) seen.add(world.state.replicas["rp_0"]?.shown ?? "gone");
  }
  expect(world.leftOver()).toEqual([]);
  expect([...seen]).toEqual(["ready"]);
});
