import { expect, test } from "vitest";
import { collect, recorded } from "./recording-fetch.ts";

/** A server with seven of each, that gives two at a time. */
const IDS = ["a", "b", "c", "d", "e", "f", "g"];
const paged = () =>
  recorded(({ path }) => {
    const { searchParams } = new URL(path, "http://x");
    const start = IDS.indexOf(searchParams.get("after") ?? "") + 1;
    const data = IDS.slice(start, start + 2).map((id) => ({ id }));
    const has_more = start + 2 < IDS.length;
    const last_id = data.at(-1)?.id ?? null;
    return Response.json({
      object: "list",
      data,
      first_id: data[0]?.id ?? null,
      last_id,
      has_more,
    });
  });

test("an iterator goes on over every page, and keeps what it was asked", async () => {
  const { client, asked } = paged();
  const runs = await collect(client.runs({ status: "running", metadata: { branch: "a b" } }));
  expect(runs.map(({ id }) => id)).toEqual(IDS);
  const queries = asked.map(({ path }) => new URL(path, "http://x").searchParams);
  expect(queries.map((query) => query.get("after"))).toEqual([null, "b", "d", "f"]);
  expect(queries.map((query) => query.get("metadata[branch]"))).toEqual(Array(4).fill("a b"));
});

test("an iterator goes on behind a page that is empty and not the last", async () => {
  const pages = [
    { data: [{ number: 900 }], last_id: "900", has_more: true },
    { data: [], last_id: "500", has_more: true },
    { data: [{ number: 3 }], last_id: "3", has_more: false },
  ];
  const { client, asked } = recorded(() => Response.json({ object: "list", first_id: null, ...pages.shift() }));
  const entries = await collect(client.ledgerEntries({ kind: "refund" }));
  expect(entries.map(({ number }) => number)).toEqual([900, 3]);
  const afters = asked.map(({ path }) => new URL(path, "http://x").searchParams.get("after"));
  expect(afters).toEqual([null, "900", "500"]);
});

test("every list has an iterator, which reads no page before it is needed", async () => {
  const { client, asked } = paged();
  for (const items of [client.datasets(), client.endpoints(), client.secrets(), client.runs()]) {
    const { value } = await items.next();
    expect(value).toEqual({ id: "a" });
    await items.return(undefined);
  }
  expect(asked.map(({ path }) => path)).toEqual(["/v1/datasets", "/v1/endpoints", "/v1/secrets", "/v1/runs"]);
});

test("an iterator starts where it is told, and one page is read by itself", async () => {
  const { client, asked } = paged();
  expect(await collect(client.datasets({ after: "e" }))).toEqual([{ id: "f" }, { id: "g" }]);
  expect(await client.listEndpoints({ limit: 2, order: "asc" })).toMatchObject({ has_more: true });
  expect(asked.at(-1)?.path).toBe("/v1/endpoints?limit=2&order=asc");
});

test("an export goes on over a page that holds nothing", async () => {
  const { client, asked } = recorded(({ path }) => {
    const { searchParams } = new URL(path, "http://x");
    if (searchParams.has("after")) return new Response('{"reward":1}\n');
    searchParams.set("after", "9-10000-0");
    const link = `<http://x/v1/runs/r/export?${searchParams}>; rel="next"`;
    return new Response("", { headers: { link } });
  });
  const query = { format: "sft", min_reward: 1, dedupe: true } as const;
  expect(await collect(client.exportRun("r", query))).toEqual([{ reward: 1 }]);
  expect(asked.map(({ path }) => path)).toEqual([
    "/v1/runs/r/export?format=sft&min_reward=1&dedupe=true",
    "/v1/runs/r/export?format=sft&min_reward=1&dedupe=true&after=9-10000-0",
  ]);
});

test("an export tells of each page what it left out", async () => {
  const note = { rows: 1, reasons: { invalid_json: 1 }, rollouts: ["ro_1"] };
  const { client } = recorded(({ path }) => {
    if (path.includes("after")) return new Response("{}\n");
    const link = '</v1/runs/r/export?after=1-1-0>; rel="next"';
    return new Response("", { headers: { link, "x-left-out": JSON.stringify(note) } });
  });
  const told: object[] = [];
  const rows = client.exportRun("r", {}, { onLeftOut: (left) => told.push(left) });
  expect(await collect(rows)).toEqual([{}]);
  expect(told).toEqual([note]);
});

const rowsOf = (...indexes: number[]) =>
  indexes.map((index) => `${JSON.stringify({ index, row: { text: "ü" } })}\n`).join("");

test("rows go on by the link, whose query alone counts: the key goes to no other address", async () => {
  const { client, asked } = recorded(({ path }) => {
    const more = !path.includes("after");
    const link = '<http://elsewhere.test/v1/datasets/d/rows?after=1&limit=2>; rel="next"';
    return new Response(more ? rowsOf(0, 1) : rowsOf(2), { headers: more ? { link } : {} });
  });
  const rows = await collect(client.datasetRows("d", { limit: 2 }));
  expect(rows.map(({ index }) => index)).toEqual([0, 1, 2]);
  expect(rows[0]?.row).toEqual({ text: "ü" });
  expect(asked.map(({ path }) => path)).toEqual(["/v1/datasets/d/rows?limit=2", "/v1/datasets/d/rows?after=1&limit=2"]);
});

test("a page of rows that is cut short is read again, and no row comes twice", async () => {
  const { client } = recorded((_asked, index) =>
    index === 0 ? new Response(rowsOf(0, 1).slice(0, -5)) : new Response(rowsOf(0, 1)),
  );
  const rows = await collect(client.datasetRows("d"));
  expect(rows.map(({ index }) => index)).toEqual([0, 1]);
});

test("a page without rows ends the iteration", async () => {
  const { client } = recorded(() => new Response(""));
  expect(await collect(client.results("run_1"))).toEqual([]);
});
