/** The objects of a batch from the trainer's client: from one stream or one by one, and never with other bytes. */
import { expect, test } from "vitest";
import type { BatchManifest } from "../../src/contract/trainer-wire.ts";
import { TrainerClient } from "../../src/sdk/trainer-client.ts";

const PARTS = [Uint8Array.of(1, 2, 3), Uint8Array.of(4), Uint8Array.of(5, 6)];

async function digest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const raw = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(raw, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function manifest(): Promise<BatchManifest> {
  const named = PARTS.map(async (part) => {
    const format = "rl.sample/1+jsonl+gzip";
    return { sha256: await digest(part), bytes: part.length, format, samples: 1, tokens: 2 };
  });
  return {
    ...{ schema: "rl.batch/1", run_id: "run_1", batch_id: "bat_1", step: 1, generation: 0 },
    ...{ train_version: 0, samples: 3, rollouts: 3, groups: 3, tokens: 6, trainable_tokens: 3 },
    ...{ min_policy_version: 0, max_policy_version: 0, environment: "e@1", model: "m" },
    estimator: { name: "mean", version: 1, params: {} },
    sampling: {},
    objects: await Promise.all(named),
    credits: { sha256: "0".repeat(64), bytes: 1, format: "rl.credit/1+jsonl" },
    sha256: "0".repeat(64),
  };
}

/** A client of a platform that replies to these paths. */
function clientOf(answer: (path: string) => Response) {
  const asked: string[] = [];
  const client = new TrainerClient({
    ...{ baseUrl: "https://rollcall.test", runId: "run_1", apiKey: "rct_1" },
    fetch: async (input) => {
      const path = new URL(String(input)).pathname.replace("/v1/runs/run_1/batches/1/", "");
      asked.push(path);
      return answer(path);
    },
  });
  return { client, asked };
}

const joined = Uint8Array.from(PARTS.flatMap((part) => Array.from(part)));

test("all objects come in one request, in the manifest's order", async () => {
  const { client, asked } = clientOf(() => new Response(joined));
  expect(await client.objects(await manifest())).toEqual(PARTS);
  expect(asked).toEqual(["stream"]);
});

test("objects that are too many for one stream are requested one by one", async () => {
  const asked = await manifest();
  const { client, asked: paths } = clientOf((path) => {
    const at = asked.objects.findIndex(({ sha256 }) => path === `objects/${sha256}`);
    const error = { code: "too_large", message: "too many", param: null, type: "x" };
    return at < 0 ? Response.json({ error }, { status: 413 }) : new Response(PARTS[at] ?? null);
  });
  expect(await client.objects(asked)).toEqual(PARTS);
  expect(paths).toHaveLength(4);
});

test("bytes that do not match the manifest are refused: changed, too few, or too many", async () => {
  for (const other of [joined.with(4, 0), joined.slice(1), Uint8Array.of(...joined, 7)]) {
    const { client } = clientOf(() => new Response(other));
    await expect(client.objects(await manifest())).rejects.toMatchObject({
      name: "BatchDigestError",
    });
  }
});
