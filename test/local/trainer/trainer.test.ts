/** The order of a step, and what a trainer does after each place where it may be cut off. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
import { baseWeights, WEIGHT_COUNT } from "../../../src/local/policy/weights.ts";
import { newAdamState } from "../../../src/local/trainer/adam.ts";
import { readCheckpoint } from "../../../src/local/trainer/checkpoint.ts";
import { Learner } from "../../../src/local/trainer/learner.ts";
import type { RowBatch } from "../../../src/local/trainer/row-batch.ts";
import { Trainer } from "../../../src/local/trainer/trainer.ts";
import { refusal, ScriptedPlatform } from "./scripted-platform.ts";

/** Of a loss that nobody asks for: the loop does not look at it. */
const gradientOf = {
  at: async (_weights: Float32Array, batches: readonly RowBatch[]) => {
    const zeros = (batch: RowBatch) => batch.weights.map(() => 0);
    const facts = batches.map((batch) => {
      return { logprobs: zeros(batch), entropies: zeros(batch), kept: zeros(batch) };
    });
    return { loss: 0, vector: new Float32Array(WEIGHT_COUNT).fill(1), facts };
  },
};

const folder = await mkdtemp(join(tmpdir(), "rollcall-trainer-"));
afterAll(() => rm(folder, { recursive: true, force: true }));
let directory = folder;
beforeEach(async () => {
  directory = await mkdtemp(join(folder, "run-"));
});

/** A trainer as a process would make it: from the checkpoint, where there is one. */
async function trainerOf(platform: ScriptedPlatform, rewind = false): Promise<Trainer> {
  const adam = newAdamState(WEIGHT_COUNT);
  const beginning = { batch: null, state: { weights: baseWeights(), adam, version: 0 } };
  const { batch, state } = (await readCheckpoint(directory)) ?? beginning;
  return new Trainer({
    client: platform,
    batches: platform,
    replicas: [],
    learner: new Learner({ learningRate: 1e-3, seed: 1 }, gradientOf, state),
    directory,
    run_id: "run_1",
    trainer_id: "t",
    batch,
    rewind,
    say: () => undefined,
    tell: ({ event }) => {
      if (event === "checkpoint") platform.log.push(event);
    },
    now: () => 0,
  });
}

const never = new AbortController().signal;

test("a step is trained, kept, acknowledged and published before the next is, and each is trained once", async () => {
  const platform = new ScriptedPlatform(2);
  const trainer = await trainerOf(platform);
  await trainer.run(never);
  const first = ["register 0", "lease 1", "checkpoint", "ack 1"];
  const second = ["published 1", "lease 2", "checkpoint", "ack 2", "published 2"];
  expect(platform.log).toEqual([...first, ...second]);
  expect(trainer.version).toBe(2);
});

test("killed after the checkpoint, before the acknowledgement, it says so when it is back and trains nothing again", async () => {
  const platform = new ScriptedPlatform(2);
  platform.failsAck = new Error("killed");
  await expect((await trainerOf(platform)).run(never)).rejects.toThrow("killed");
  platform.log.length = 0;
  await (await trainerOf(platform)).run(never);
  expect(platform.log.slice(0, 3)).toEqual(["register 1", "published 1", "lease 2"]);
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

test("told to stop with a batch in hand, it gives that back", async () => {
  const platform = new ScriptedPlatform(2);
  const stop = new AbortController();
  platform.onLease = () => stop.abort();
  await (await trainerOf(platform)).run(stop.signal);
  expect(platform.log).toEqual(["register 0", "lease 1", "nack shutdown"]);
});

test("told to stop while a batch trains, it ends that step and publishes what came of it", async () => {
  const platform = new ScriptedPlatform(2);
  const stop = new AbortController();
  platform.onAck = () => stop.abort();
  await (await trainerOf(platform)).run(stop.signal);
  expect(platform.log.slice(-2)).toEqual(["ack 1", "published 1"]);
});

test("behind what was published it says how to go back, and goes back when told to", async () => {
  const platform = new ScriptedPlatform(2);
  platform.published = 1;
  await expect((await trainerOf(platform)).run(never)).rejects.toThrow("--rewind");
  const trainer = await trainerOf(platform, true);
  await trainer.run(never);
  expect(platform.log[0]).toBe("register 0");
  expect(trainer.version).toBe(2);
});
