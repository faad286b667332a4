/** How a trainer reads a batch's objects and credits. */

import { splitObjects } from "rollcall/sdk/trainer";
import { expect, test } from "vitest";
import { downloadBatch } from "../read-ahead.ts";
import { handMadeBatch } from "./hand-made-batch.ts";

test("each sample gets its credit, in the order of the manifest, with either encoding", async () => {
  const { source, manifest } = await handMadeBatch();
  const samples = await downloadBatch(source, manifest);
  expect(samples.map(({ advantage }) => advantage)).toEqual([0.25, 0.5, -0.5]);
  expect(samples[2]).toEqual({
    ids: Int32Array.of(10, 11, 20),
    mask: Uint8Array.of(0, 0, 1),
    logprobs: Float32Array.of(0, 0, -0.5),
    advantage: -0.5,
  });
});

test("a sample without a credit is not trained on", async () => {
  const { source, manifest } = await handMadeBatch(1, [0.5]);
  expect(await downloadBatch(source, manifest)).toHaveLength(1);
});

test("an object, a manifest or credits that were changed are refused", async () => {
  const { source, manifest, objects } = await handMadeBatch();
  const [first = ""] = objects.keys();
  const bytes = objects.get(first) ?? new Uint8Array();
  const flipped = bytes.with(5, (bytes[5] ?? 0) ^ 1);
  const withFirst = async (other: Uint8Array<ArrayBuffer>) => {
    const parts = manifest.objects.map(({ sha256 }) => objects.get(sha256) ?? new Uint8Array());
    return await splitObjects(manifest, new Uint8Array(Buffer.concat([other, ...parts.slice(1)])));
  };
  const cut = { ...source, objects: () => withFirst(bytes.slice(1)) };
  const changed = { ...source, objects: () => withFirst(flipped) };
  const other = { ...source, credits: async () => `${await source.credits()}\n` };
  const swapped = { ...manifest, objects: manifest.objects.toReversed() };
  for (const refused of [
    () => downloadBatch(cut, manifest),
    () => downloadBatch(changed, manifest),
    () => downloadBatch(other, manifest),
    () => downloadBatch(source, swapped),
  ]) {
    await expect(refused()).rejects.toMatchObject({ name: "BatchFault", reason: "decode" });
  }
});

test("a batch that leaves the advantage to its trainer is refused", async () => {
  const { source, manifest } = await handMadeBatch(1, [null, null, null]);
  await expect(downloadBatch(source, manifest)).rejects.toMatchObject({ reason: "invalid" });
});

test("each sample gets the weight of its credit, and none if the credits have no weights", async () => {
  const weighed = await handMadeBatch(1, [0.5, -0.5, 0.25], 1.5);
  const samples = await downloadBatch(weighed.source, weighed.manifest);
  expect(samples.map(({ weight }) => weight)).toEqual([1.5, 1.5, 1.5]);
});
