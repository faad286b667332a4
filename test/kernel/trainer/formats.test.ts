/** A batch in a trainer's own format, through the Worker's HTTP interface. */

import { env } from "cloudflare:workers";
import { decode } from "@msgpack/msgpack";
import { beforeAll, expect, test } from "vitest";
import { encodeRows } from "../../../src/core/training/sample-row.ts";
import { batchKeys, sampleKey } from "../../../src/kernel/kit/names.ts";
import { TrainerClient } from "../../../src/sdk/trainer-client.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { type Delivery, GOING, openDelivery, row, storeBatch, zipped } from "../trainer-batch.ts";

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

type Stored = Awaited<ReturnType<typeof storeBatch>>;

async function delivered(groups: readonly number[], change?: (stored: Stored) => Promise<void>) {
  const delivery = await openDelivery(api.scope);
  const stored = await storeBatch(api.scope, delivery.run_id, 1, groups);
  await change?.(stored);
  await delivery.trainer.ready([stored.ready], GOING);
  return { ...stored, delivery, get: (query: string) => read(delivery, query) };
}

function read({ run_id, token }: Delivery, query: string): Promise<Response> {
  return api.ask(`/v1/runs/${run_id}/batches/1?${query}`, { headers: { authorization: `Bearer ${token}` } });
}

/** The same batch with another manifest. */
async function rewrite({ ready, manifest }: Stored, changed: object): Promise<void> {
  await env.STORE.put(ready.manifest_key, JSON.stringify({ ...manifest, ...changed }));
}

test("a batch comes as lines of each format, in the manifest's order, with the digest of its manifest", async () => {
  const { manifest, get } = await delivered([3, 5]);
  for (const format of ["neutral", "trl", "trl-rollout", "tinker", "slime", "verl", "skyrl"]) {
    const reply = await get(`format=${format}`);
    expect([reply.status, reply.headers.get("content-type")]).toEqual([200, "application/jsonl"]);
    expect(reply.headers.get("x-batch-sha256")).toBe(manifest.sha256);
    const rows = (await reply.text()).trimEnd().split("\n");
    expect(rows.length, format).toBe(2);
  }
  const rows = (await (await get("format=trl")).text()).trimEnd().split("\n");
  expect(rows.map((row) => JSON.parse(row))).toMatchObject([
    { input_ids: [7, 8, 9], advantage: 0.5, model_version: 1, metrics: { reward: 1 } },
    { input_ids: [7, 8, 9, 10, 11], completion_mask: [0, 1, 1, 1, 1] },
  ]);
});

test("prime-rl gets packed rows, equally many micro batches for each rank, and the number of cut rows", async () => {
  const { get } = await delivered([3, 5, 4, 12]);
  const shares = await Promise.all(
    [0, 1].map(async (rank) => {
      const reply = await get(`format=prime-rl&seq_len=8&ranks=2&rank=${rank}`);
      expect([reply.status, reply.headers.get("content-type")]).toEqual([200, "application/vnd.msgpack"]);
      expect(reply.headers.get("x-cut-rows")).toBe("1");
      return decode(new Uint8Array(await reply.arrayBuffer())) as unknown[][];
    }),
  );
  expect(shares.map((share) => share.map(([ids]) => (ids as number[]).length))).toEqual([
    [8, 8],
    [4, 1],
  ]);
  const padded = await get("format=prime-rl&seq_len=8&ranks=2&rank=1&pad_to_multiple_of=8");
  const batches = decode(new Uint8Array(await padded.arrayBuffer())) as unknown[][];
  expect(batches.map(([ids]) => (ids as number[]).length)).toEqual([8, 8]);
  expect(shares.flat().every((batch) => batch.length === 20)).toBe(true);
  const [first] = shares[0] ?? [];
  expect(first?.slice(5, 6)).toEqual([[3, 5]]);
  expect(first?.[17]).toEqual(["r3", "r5"]);
});

test("a row without a credit, or without the value it needs, is in no format", async () => {
  const { get } = await delivered([3, 5, 4], async ({ manifest: { run_id, batch_id } }) => {
    const lines = [
      { sample_id: "s3", reward: 1, advantage: null, outcome: "scored" },
      { sample_id: "s4", reward: 2, advantage: 1, outcome: "scored" },
    ];
    const { credits_key } = batchKeys(api.scope, run_id, batch_id);
    await env.STORE.put(credits_key, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  });
  const lengths = async (format: string, name: string) => {
    const rows = (await (await get(`format=${format}`)).text()).trimEnd().split("\n");
    return rows.map((row) => JSON.parse(row)[name].length);
  };
  expect(await lengths("trl", "input_ids")).toEqual([4]);
  expect(await lengths("slime", "tokens")).toEqual([3, 4]);
});

test("rows of one rollout have the same name, its last row in the batch is marked, and the advantage is the run's own", async () => {
  const branches = [0, 1, 2].map((branch) => ({ ...row(3 + branch), rollout_id: "ro_a", sample_id: `ro_a.${branch}` }));
  const { get } = await delivered([3, 5], async (stored) => {
    const [first, second] = stored.manifest.objects;
    const sha256 = "a".repeat(64);
    const key = sampleKey(api.scope, stored.manifest.run_id, sha256);
    await env.STORE.put(key, await zipped(encodeRows([...branches, row(5)], "jsonl")));
    await rewrite(stored, { objects: [first, { ...second, sha256 }] });
    // The last row has no credit, so it is not trained on.
    const credits = ["s3", "ro_a.0", "ro_a.1", "s5"].map((sample_id, at) => {
      return `${JSON.stringify({ sample_id, reward: at, advantage: at - 0.25, outcome: "scored" })}\n`;
    });
    await env.STORE.put(
      batchKeys(api.scope, stored.manifest.run_id, stored.manifest.batch_id).credits_key,
      credits.join(""),
    );
  });
  const lines = async (format: string) => {
    const text = await (await get(`format=${format}`)).text();
    return text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
  };
  expect((await lines("skyrl")).map(({ is_last_step, rollout_id }) => [rollout_id, is_last_step])).toEqual([
    ["r3", true],
    ["ro_a", false],
    ["ro_a", true],
    ["r5", true],
  ]);
  for (const format of ["trl-rollout", "slime", "verl", "skyrl"]) {
    const rows = await lines(format);
    expect(
      rows.map(({ advantage }) => advantage),
      format,
    ).toEqual([-0.25, 0.75, 1.75, 2.75]);
    expect(rows[1].rollout_id).toBe(rows[2].rollout_id);
    expect(new Set(rows.map(({ rollout_id }) => rollout_id)).size).toBe(3);
  }
});

test("a request for an impossible format is refused, naming the field at fault", async () => {
  const { get } = await delivered([3]);
  const refusal = async (query: string) => {
    const reply = await get(query);
    const { error } = await reply.json<{ error: { param: string } }>();
    return [reply.status, error.param];
  };
  expect(await refusal("format=torch")).toEqual([400, "format"]);
  expect(await refusal("format=prime-rl")).toEqual([400, "seq_len"]);
  expect(await refusal("format=prime-rl&seq_len=8&rank=1")).toEqual([400, "ranks"]);
  expect(await refusal("format=trl&seq_len=8")).toEqual([400, "format"]);
  expect(await refusal("rank=0")).toEqual([400, "format"]);
});

test("a run without advantages gives its rewards, and no format that needs advantages", async () => {
  const { get } = await delivered([3], (stored) =>
    rewrite(stored, { estimator: { name: "none", version: 1, params: {} } }),
  );
  for (const query of ["format=trl", "format=tinker", "format=prime-rl&seq_len=8"]) {
    expect((await get(query)).status, query).toBe(400);
  }
  expect((await get("format=verl")).status).toBe(200);
});

test("a batch with more tokens than one answer allows is refused before it begins", async () => {
  const { get } = await delivered([3], async (stored) => {
    const objects = stored.manifest.objects.map((object) => ({ ...object, tokens: 5_000_000 }));
    await rewrite(stored, { objects });
  });
  expect((await get("format=neutral")).status).toBe(413);
  expect((await get("")).status).toBe(200);
});

test("a damaged batch breaks the reply off, so that no part is taken for the whole", async () => {
  const { get } = await delivered([3, 5], async (stored) => {
    const [first, second] = stored.manifest.objects;
    await rewrite(stored, { objects: [first, { ...second, sha256: "0".repeat(64) }] });
  });
  await expect(async () => (await get("format=trl")).text()).rejects.toThrow();
});

test("the client requests a batch in a format and passes its stream on", async () => {
  const { delivery, manifest } = await delivered([3]);
  const options = { baseUrl: "http://x", runId: delivery.run_id, apiKey: delivery.token };
  const fetch = (url: string | URL | Request, init?: RequestInit) => {
    const { pathname, search } = new URL(String(url));
    return api.ask(`${pathname}${search}`, init);
  };
  const client = new TrainerClient({ ...options, fetch });
  const { body, sha256, cut_rows } = await client.batchAs(1, { format: "slime" });
  expect([sha256, cut_rows]).toEqual([manifest.sha256, null]);
  expect(await new Response(body).json()).toMatchObject({ tokens: [7, 8, 9] });
  expect((await client.batchAs(1, { format: "prime-rl", seq_len: 2 })).cut_rows).toBe(1);
});
