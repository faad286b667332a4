/** A batch as the platform stores it: objects, credits, manifest. */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { BatchManifest } from "rollcall/contract";
import { splitObjects } from "rollcall/sdk/trainer";
import { creditText, encodeRows, formatOf, manifestOf, type SampleEncoding, type SampleRow } from "rollcall/training";

const digest = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex");

function row(sample_id: string): SampleRow {
  return {
    schema: "rl.sample/1",
    sample_id,
    rollout_id: `ro_${sample_id}`,
    group_id: "grp_1",
    env: "math@1",
    token_ids: Int32Array.of(10, 11, 20),
    mask: Uint8Array.of(0, 0, 1),
    logprobs: Float32Array.of(0, 0, -0.5),
    temperature: 1,
    policy_version_start: 0,
    policy_version_end: 0,
  };
}

/** Two objects, one in each encoding, and the credits of their samples. `weight`: of each of them. */
export async function handMadeBatch(
  step = 1,
  advantages: readonly (number | null)[] = [0.5, -0.5, 0.25],
  weight?: number,
) {
  const objects = new Map<string, Uint8Array<ArrayBuffer>>();
  const group = (encoding: SampleEncoding, ids: readonly string[]) => {
    const bytes = new Uint8Array(gzipSync(encodeRows(ids.map(row), encoding)));
    const sha256 = digest(bytes);
    objects.set(sha256, bytes);
    const samples = ids.map((id) => ({
      rollout_id: `ro_${id}`,
      tokens: 3,
      trainable_tokens: 1,
      policy_version_start: 0,
      policy_version_end: 0,
    }));
    return { object: { sha256, bytes: bytes.length, format: formatOf(encoding) }, samples };
  };
  const credits = creditText(
    ["b", "c", "a"].flatMap((sample_id, at) => {
      const advantage = advantages[at];
      return advantage === undefined ? [] : [{ sample_id, reward: 1, advantage, outcome: "scored", weight }];
    }),
  );
  const parts = {
    run_id: "run_1",
    step,
    generation: 0,
    estimator: { name: "mean", version: 1, params: {} },
    environment: "math@1",
    model: "m",
    sampling: {},
    groups: [group("msgpack", ["a", "b"]), group("jsonl", ["c"])],
    credits: { sha256: digest(credits), bytes: credits.length },
  } as const;
  const manifest = await manifestOf(parts, async (bytes) => digest(bytes));
  const source = {
    objects: async (asked: Pick<BatchManifest, "objects">) => {
      const stored = asked.objects.map(({ sha256 }) => objects.get(sha256) ?? new Uint8Array());
      return await splitObjects(asked, new Uint8Array(Buffer.concat(stored)));
    },
    credits: async () => credits,
  };
  return { manifest, source, objects };
}
