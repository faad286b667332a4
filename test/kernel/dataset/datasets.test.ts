import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { mintId } from "../../../src/core/ids.ts";
import { uploadKeys } from "../../../src/kernel/kit/names.ts";
import { minting } from "../../../src/kernel/kit/secrets.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { questions } from "../rows.ts";
import { jsonLines, kept, rowPages, textOf, uploaded } from "../upload.ts";

const good = '{"question":"q"}\n';
/** The tests move megabytes through both stores. */
const NOTHING = { keys: [], ids: [] };

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

test.for([
  ["short rows", 20],
  ["rows whose blocks are cut by their bytes", 2500],
] as const)("%s can be read from any place, across the blocks of the index", async ([, padding]) => {
  const rows = Array.from({ length: 600 }, (_, index) => ({
    question: `${index} `.padEnd(padding, "é"),
  }));
  const { id } = await uploaded(platform, jsonLines(rows));
  const whole = rows.map((row, index) => ({ index, row }));
  expect((await rowPages(platform, id, "limit=1000")).flat()).toEqual(whole);
  expect((await rowPages(platform, id, "limit=250")).map((page) => page.length)).toEqual([250, 250, 100]);
  for (const index of [0, 254, 255, 256, 511, 512, 599]) {
    const after = index === 0 ? "" : `after=${index - 1}&`;
    const response = await platform.ask(`/v1/datasets/${id}/rows?${after}limit=1`);
    expect(JSON.parse(await textOf(response))).toEqual({ index, row: rows[index] });
  }
  const beyond = await platform.ask(`/v1/datasets/${id}/rows?after=599`);
  expect([beyond.status, await textOf(beyond), beyond.headers.get("link")]).toEqual([200, "", null]);
});

test("a page of long rows ends before the answer becomes too large", async () => {
  const row = { question: "x".repeat(2_800_000) };
  const { id } = await uploaded(platform, jsonLines([row, row, row, row]));
  expect((await rowPages(platform, id)).map((page) => page.length)).toEqual([2, 2]);
});

test("lists are ordered by time, newest first, one page at a time", async () => {
  const api = await openPlatform();
  const ids: string[] = [];
  for (const count of [1, 2, 3]) ids.push((await uploaded(api, jsonLines(questions(count)))).id);
  const read = async (query: string) => {
    const response = await api.ask(`/v1/datasets?${query}`);
    return await response.json<{
      data: { id: string; rows: number }[];
      has_more: boolean;
      last_id: string;
    }>();
  };
  const first = await read("limit=2");
  expect([first.data.map(({ rows }) => rows), first.has_more]).toEqual([[3, 2], true]);
  const second = await read(`limit=2&after=${first.last_id}`);
  expect([second.data.map(({ id }) => id), second.has_more]).toEqual([[ids[0]], false]);
  expect((await read("order=asc")).data.map(({ id }) => id)).toEqual(ids);
  expect((await read("")).data.length).toBe(3);
  expect((await (await openPlatform()).ask("/v1/datasets?after=nobody")).status).toBe(400);
});

test("a dataset of another project, or one that does not exist, is not found", async () => {
  const { id } = await uploaded(platform, good, "name=private");
  const other = await openPlatform();
  const never = mintId("ds", minting(env, Date.now()));
  const guess = `${id.slice(0, -1)}${id.endsWith("a") ? "b" : "a"}`;
  for (const named of [id, "private", never, guess, "ds_x", "run_x"]) {
    for (const [method, path] of [
      ["GET", ""],
      ["GET", "/rows"],
      ["DELETE", ""],
    ] as const) {
      const response = await other.ask(`/v1/datasets/${named}${path}`, { method });
      expect([named, response.status]).toEqual([named, 404]);
    }
  }
  expect((await platform.ask(`/v1/datasets/${guess}`)).status).toBe(404);
  expect((await platform.ask("/v1/datasets/private")).status).toBe(200);
});

test("rows that are deleted while they are read give not found, as the dataset will", async () => {
  const { id } = await uploaded(platform, good);
  await env.STORE.delete(uploadKeys(platform.scope, id).key);
  const response = await platform.ask(`/v1/datasets/${id}/rows`);
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({
    error: { code: "not_found", message: expect.stringContaining("are missing"), param: "id" },
  });
});

test("a deleted dataset is gone from both stores", async () => {
  const api = await openPlatform();
  const { id } = await uploaded(api, good, "name=short-lived");
  const response = await api.ask("/v1/datasets/short-lived", { method: "DELETE" });
  expect(await response.json()).toEqual({ object: "dataset", id, deleted: true });
  expect(await kept(api)).toEqual(NOTHING);
  expect((await api.ask(`/v1/datasets/${id}`, { method: "DELETE" })).status).toBe(404);
});
