/**
 * Stores what a trainer must not lose: the weights, the optimiser's state, and the batch that produced them.
 *
 * Invariants: it is one file, replaced as a whole: a new file is written next to it, flushed to the disk and renamed
 * over the old one. After a crash the file therefore holds the state before a batch or the state after it, with the
 * batch's name, and never a part of one. It is written before the batch is acknowledged and before the new weights are
 * published.
 *
 * Format: a line of JSON, then little-endian 32-bit floats: weights, running means, running squares.
 */
import { mkdir, open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { bytesFromWeights, weightsFromBytes } from "@rollcall/policy/weights";
import * as z from "zod";
import type { LearnerState } from "./learner.ts";

const FILE = "checkpoint.bin";

const Header = z.object({
  format: z.literal("rollcall-trainer/1"),
  run_id: z.string(),
  version: z.int().min(0),
  adam_steps: z.int().min(0),
  /** The batch that produced this version; null for the initial weights. */
  batch: z.object({ batch_id: z.string(), sha256: z.string() }).nullable(),
});

export interface Checkpoint {
  readonly run_id: string;
  readonly batch: { readonly batch_id: string; readonly sha256: string } | null;
  readonly state: LearnerState;
}

export async function writeCheckpoint(directory: string, checkpoint: Checkpoint): Promise<void> {
  const { run_id, batch, state } = checkpoint;
  const { weights, adam, version } = state;
  const header: z.infer<typeof Header> = {
    format: "rollcall-trainer/1",
    run_id,
    version,
    adam_steps: adam.steps,
    batch,
  };
  await mkdir(directory, { recursive: true });
  const beside = join(directory, `${FILE}.tmp`);
  const file = await open(beside, "w");
  try {
    await file.writev([
      new TextEncoder().encode(`${JSON.stringify(header)}\n`),
      ...[weights, adam.mean, adam.square].map(bytesFromWeights),
    ]);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(beside, join(directory, FILE));
}

/** Null if there is none. Throws if there is one that this trainer cannot read. */
export async function readCheckpoint(directory: string): Promise<Checkpoint | null> {
  const path = join(directory, FILE);
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (bytes === null) return null;
  try {
    return decode(bytes);
  } catch (error) {
    throw new Error(`${path} is no checkpoint of this trainer: move it away to begin anew`, {
      cause: error,
    });
  }
}

function decode(bytes: Buffer): Checkpoint {
  const end = bytes.indexOf("\n");
  const { run_id, version, adam_steps, batch } = Header.parse(JSON.parse(bytes.subarray(0, end).toString()));
  const floats = bytes.subarray(end + 1);
  const third = floats.length / 3;
  const vector = (index: number) => weightsFromBytes(floats.subarray(index * third, (index + 1) * third));
  const adam = { mean: vector(1), square: vector(2), steps: adam_steps };
  return { run_id, batch, state: { weights: vector(0), adam, version } };
}
