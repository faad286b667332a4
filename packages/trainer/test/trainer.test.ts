/** The order of a step, and the trainer's behaviour after an interruption at each point. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { baseWeights, WEIGHT_COUNT } from "@rollcall/policy/weights";
import { afterAll, beforeEach, expect, test } from "vitest";
import { newAdamState } from "../adam.ts";
import { readCheckpoint } from "../checkpoint.ts";
import { Learner } from "../learner.ts";
import type { RowBatch } from "../row-batch.ts";
import { Trainer } from "../trainer.ts";
import { handMadeBatch } from "./hand-made-batch.ts";
import { refusal, ScriptedPlatform } from "./scripted-platform.ts";

/** For a fake loss: the loop does not use it. */
const gradientOf = {
  at: async (_weights: Float32Array, batches: readonly RowBatch[]) => {
    const zeros = (batch: RowBatch) => batch.weights.map(() => 0);
    const facts = batches.map((batch) => {
      return { logprobs: zeros(batch), entropies: zeros(batch), kept: zeros(batch) };
    });
    return { loss: 0, vector: new Float32Array(WEIGHT_COUNT).fill(1), facts };
  },
};

function gradientReported(tell: () => void): typeof gradientOf {
  return {
    at: (weights, batches) => {
      tell();
      return gradientOf.at(weights, batches);
    },
  };
}

const folder = await mkdtemp(join(tmpdir(), "rollcall-trainer-"));
afterAll(() => rm(folder, { recursive: true, force: true }));
let directory = folder;
beforeEach(async () => {
  directory = await mkdtemp(join(folder, "run-"));
});

/** A trainer as a process makes it: from the checkpoint if there is one. */
async function trainerOf(
  platform: ScriptedPlatform,
  rewind = false,
  onGradient: () => void = () => undefined,
): Promise<Trainer> {
  const adam = newAdamState(WEIGHT_COUNT);
  const beginning = { batch: null, state: { weights: baseWeights(), adam, version: 0 } };
  const from = (await readCheckpoint(directory)) ?? beginning;
  return new Trainer({
    client: platform,
    batches: platform,
    replicas: [],
    learner: new Learner({ learningRate: 1e-3, seed: 1, passes: 1 }, gradientReported(onGradient)),
    directory,
    run_id: "run_1",
    trainer_id: "t",
    from,
    rewind,
    log: () => undefined,
    tell: ({ event }) => {
      if (event === "checkpoint") platform.log.push(event);
    },
    now: () => 0,
  });
}

const never = new AbortController().signal;

test("a step is trained, stored, acknowledged with its weights, and only then the next is leased; each is trained once", async () => {
  const platform = new ScriptedPlatform(2);
  const trainer = await trainerOf(platform);
  await trainer.run(never);
  const first = ["register 0", "lease 1", "checkpoint", "ack 1, published"];
  const second = ["lease 2", "checkpoint", "ack 2, published"];
  expect(platform.log.filter((entry) => !entry.startsWith("read"))).toEqual([...first, ...second]);
  expect(trainer.version).toBe(2);
});

test("the next batch is read while one trains, and trains while the one before is acknowledged", async () => {
  const platform = new ScriptedPlatform(3);
  let minibatches = 0;
  let trains = Promise.withResolvers<void>();
  const trainer = await trainerOf(platform, false, () => {
    minibatches += 1;
    trains.resolve();
  });
  platform.onAck = async () => {
    // Accepted only when the next step has begun to train: two minibatches make a step.
    const acked = platform.log.filter((entry) => entry.startsWith("ack")).length;
    while (acked < 3 && minibatches <= 2 * acked) {
      trains = Promise.withResolvers();
      await trains.promise;
    }
  };
  await trainer.run(never);
  expect(minibatches).toBe(6);
  expect(platform.log.indexOf("read 2")).toBeLessThan(platform.log.indexOf("ack 1, published"));
  expect(trainer.version).toBe(3);
});

test("training on a batch that was read ahead does not count if another batch is leased", async () => {
  const [platform, plain] = [new ScriptedPlatform(1), new ScriptedPlatform(1)];
  const other = await handMadeBatch(1, [0.5]);
  const { objects, credits, sha256 } = other.manifest;
  platform.readAhead = { objects, credits, sha256 };
  const { source } = await handMadeBatch(1);
  platform.credits = async () => (platform.log.includes("lease 1") ? source.credits() : other.source.credits());
  await (await trainerOf(platform)).run(never);
  const made = await readCheckpoint(directory);
  directory = await mkdtemp(join(folder, "plain-"));
  await (await trainerOf(plain)).run(never);
  const expected = await readCheckpoint(directory);
  expect(made).toEqual(expected);
});

test("killed while the next step trains before the previous one is acknowledged, it trains neither twice", async () => {
  const platform = new ScriptedPlatform(3);
  let steps = 0;
  const failing = await trainerOf(platform, false, () => {
    steps += 1;
  });
  platform.onAck = async () => {
    throw new Error("killed");
  };
  await expect(failing.run(never)).rejects.toThrow("killed");
  expect(steps).toBeGreaterThan(0);
  expect((await readCheckpoint(directory))?.state.version).toBe(1);
  platform.onAck = () => undefined;
  const trainer = await trainerOf(platform);
  await trainer.run(never);
  expect(trainer.version).toBe(3);
  const acked = platform.log.filter((entry) => entry.startsWith("ack"));
  expect(acked).toEqual([1, 2, 3].map((step) => `ack ${step}, published`));
});

test("killed after the checkpoint and before the acknowledgement, it acknowledges after its restart and trains nothing again", async () => {
  const platform = new ScriptedPlatform(2);
  platform.failsAck = new Error("killed");
  await expect((await trainerOf(platform)).run(never)).rejects.toThrow("killed");
  platform.log.length = 0;
  await (await trainerOf(platform)).run(never);
  const log = platform.log.filter((entry) => !entry.startsWith("read"));
  expect(log.slice(0, 3)).toEqual(["register 1", "published 1", "lease 2"]);
});

test("killed before the checkpoint, it gets the same batch again", async () => {
  const platform = new ScriptedPlatform(2);
  platform.onLease = () => {
    throw new Error("killed");
  };
  await expect((await trainerOf(platform)).run(never)).rejects.toThrow("killed");
  platform.onLease = () => undefined;
  const trainer = await trainerOf(platform);
  await trainer.run(never);
  expect(platform.log.filter((entry) => entry === "lease 1")).toHaveLength(2);
  expect(trainer.version).toBe(2);
});

test("a lease that was lost while the batch trained costs a registration, not a batch", async () => {
  const platform = new ScriptedPlatform(2);
  platform.failsAck = refusal(409, "lease_lost");
  const trainer = await trainerOf(platform);
  await trainer.run(never);
  expect(platform.log.filter((entry) => /register|lease/.test(entry))).toEqual([
    "register 0",
    "lease 1",
    "register 1",
    "lease 2",
  ]);
  expect(trainer.version).toBe(2);
});

test("stopped with a leased batch, it gives the batch back", async () => {
  const platform = new ScriptedPlatform(2);
  const stop = new AbortController();
  platform.onLease = () => stop.abort();
  await (await trainerOf(platform)).run(stop.signal);
  const log = platform.log.filter((entry) => !entry.startsWith("read"));
  expect(log).toEqual(["register 0", "lease 1", "nack shutdown"]);
});

test("stopped while a batch trains, it finishes that step and publishes the result", async () => {
  const platform = new ScriptedPlatform(2);
  const stop = new AbortController();
  platform.onAck = () => stop.abort();
  await (await trainerOf(platform)).run(stop.signal);
  const log = platform.log.filter((entry) => !entry.startsWith("read"));
  expect(log.slice(0, 4)).toEqual(["register 0", "lease 1", "checkpoint", "ack 1, published"]);
  expect((await readCheckpoint(directory))?.state.version).toBe(1);
});

test("if later versions were published, it says how to go back, and goes back if it is started with rewind", async () => {
  const platform = new ScriptedPlatform(2);
  platform.published = 1;
  await expect((await trainerOf(platform)).run(never)).rejects.toThrow("--rewind");
  const trainer = await trainerOf(platform, true);
  await trainer.run(never);
  expect(platform.log[0]).toBe("register 0");
  expect(trainer.version).toBe(2);
});
