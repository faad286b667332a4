import { expect, test } from "vitest";
import { BatchManifest } from "../../../src/contract/trainer-wire.ts";
import {
  type BatchParts,
  batchDigest,
  batchId,
  creditText,
  manifestOf,
  parseCredits,
} from "../../../src/core/training/batch.ts";
import { sha256Hex } from "./digest.ts";

const digestOf = (text: string) => sha256Hex(Uint8Array.from(new TextEncoder().encode(text)));
const RUN = "run_0123456789abcdefghjkmnpqrscode5678";

test("a batch's digest is over the raw digests of its objects, then of its credits", async () => {
  const [a, b, credits] = [await digestOf("a"), await digestOf("b"), await digestOf("c")];
  expect(await batchDigest([a, b], null, sha256Hex)).toBe(
    "e5a01fee14e0ed5c48714f22180f25ad8365b53f9779f79dc4a3d7e93963f94a",
  );
  expect(await batchDigest([a, b], credits, sha256Hex)).toBe(await batchDigest([a, b, credits], null, sha256Hex));
  expect(await batchDigest([b, a], null, sha256Hex)).not.toBe(await batchDigest([a, b], null, sha256Hex));
});

test("a batch's id is always the same, and a different one after a reset", () => {
  expect(batchId(RUN, 7, 0)).toBe("bat_0123456789abcdefghjkmnpqrscode5678_0_7");
  expect(batchId(RUN, 7, 1)).not.toBe(batchId(RUN, 7, 0));
});

test("credits have one line per sample, and are parsed unchanged", () => {
  const scored = { sample_id: "ro_1.0", reward: 1, advantage: 0.5, outcome: "scored" };
  const weighed = { ...scored, sample_id: "ro_3.0", weight: 1.5 };
  expect(parseCredits(creditText([weighed]))).toEqual([weighed]);
  const judged = { ...scored, sample_id: "ro_2.0", advantage: null, rubric_digest: "d1" };
  const text = creditText([scored, judged]);
  expect(text).toBe(
    '{"sample_id":"ro_1.0","reward":1,"advantage":0.5,"outcome":"scored"}\n' +
      '{"sample_id":"ro_2.0","reward":1,"advantage":null,"rubric_digest":"d1","outcome":"scored"}\n',
  );
  expect(parseCredits(text)).toEqual([scored, judged]);
  expect(() => parseCredits('{"sample_id":1}\n')).toThrow();
});

const sample = (rollout_id: string, tokens: number, start: number, end: number) => ({
  sample_id: `${rollout_id}.${tokens}`,
  rollout_id,
  tokens,
  trainable_tokens: 2,
  policy_version_start: start,
  policy_version_end: end,
});

async function parts(): Promise<BatchParts> {
  const format = "rl.sample/1+msgpack+gzip";
  return {
    run_id: RUN,
    step: 3,
    generation: 0,
    estimator: { name: "mean", version: 1, params: {} },
    environment: "calculator@1.0.0",
    model: "policy",
    sampling: { temperature: 1 },
    groups: [
      {
        object: { sha256: await digestOf("a"), bytes: 10, format },
        samples: [sample("ro_1", 7, 1, 2), sample("ro_1", 5, 1, 3)],
      },
      {
        object: { sha256: await digestOf("b"), bytes: 20, format },
        samples: [sample("ro_2", 9, 2, 2)],
      },
    ],
    credits: { sha256: await digestOf("c"), bytes: 30 },
  };
}

test("a manifest has the counts of the batch, in the wire's schema", async () => {
  const manifest = await manifestOf(await parts(), sha256Hex);
  expect(BatchManifest.parse(manifest)).toEqual(manifest);
  expect(manifest).toMatchObject({
    batch_id: batchId(RUN, 3, 0),
    train_version: 2,
    samples: 3,
    rollouts: 2,
    groups: 2,
    tokens: 21,
    trainable_tokens: 6,
    min_policy_version: 1,
    max_policy_version: 3,
    objects: [
      { bytes: 10, samples: 2, tokens: 12 },
      { bytes: 20, samples: 1, tokens: 9 },
    ],
    credits: { bytes: 30, format: "rl.credit/1+jsonl" },
  });
  const digests = manifest.objects.map(({ sha256 }) => sha256);
  expect(manifest.sha256).toBe(await batchDigest(digests, manifest.credits.sha256, sha256Hex));
});

test("a batch without samples is an error", async () => {
  await expect(manifestOf({ ...(await parts()), groups: [] }, sha256Hex)).rejects.toThrow(RangeError);
});
