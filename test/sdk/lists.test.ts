import { expect, test } from "vitest";
import { collect, recorded } from "./recording-fetch.ts";

/** A server with seven objects per list, and two per page. */
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

test("an iterator continues over every page, and keeps the query", async () => {
  const { client, asked } = paged();
  const runs = await collect(client.runs.list({ status: "running", metadata: { branch: "a b" } }));
  expect(runs.map(({ id }) => id)).toEqual(IDS);
  const queries = asked.map(({ path }) => new URL(path, "http://x").searchParams);
  expect(queries.map((query) => query.get("after"))).toEqual([null, "b", "d", "f"]);
  expect(queries.map((query) => query.get("metadata[branch]"))).toEqual(Array(4).fill("a b"));
});

test("an iterator continues after an empty page that is not the last", async () => {
  const pages = [
    { data: [{ number: 900 }], last_id: "900", has_more: true },
    { data: [], last_id: "500", has_more: true },
    { data: [{ number: 3 }], last_id: "3", has_more: false },
  ];
  const { client, asked } = recorded(() => Response.json({ object: "list", first_id: null, ...pages.shift() }));
  const entries = await collect(client.ledger.list({ kind: "refund" }));
  expect(entries.map(({ number }) => number)).toEqual([900, 3]);
  const afters = asked.map(({ path }) => new URL(path, "http://x").searchParams.get("after"));
  expect(afters).toEqual([null, "900", "500"]);
});

test("an iteration that ends early requests no further page", async () => {
  const { client, asked } = paged();
  for await (const { id } of client.runs.list()) {
    if (id === "c") break;
  }
  expect(asked.map(({ path }) => path)).toEqual(["/v1/runs", "/v1/runs?after=b"]);
});

test("a list can be awaited for its first page and then iterated from there, with one request per page", async () => {
  const { client, asked } = paged();
  const list = client.datasets.list({ after: "c" });
  expect((await list).data).toEqual([{ id: "d" }, { id: "e" }]);
  expect(await collect(list)).toEqual([{ id: "d" }, { id: "e" }, { id: "f" }, { id: "g" }]);
  expect(asked.map(({ path }) => path)).toEqual(["/v1/datasets?after=c", "/v1/datasets?after=e"]);
});

test("an iteration throws the API's error", async () => {
  const { client } = recorded(() => {
    return Response.json({ error: { code: "not_found", message: "no such run" } }, { status: 404 });
  });
  await expect(collect(client.runs.groups.list("r"))).rejects.toMatchObject({ code: "not_found" });
});

test("statements continue after the last month of a page", async () => {
  const pages = [
    { data: [{ month: "2026-10" }, { month: "2026-09" }], has_more: true },
    { data: [{ month: "2026-08" }], has_more: false },
  ];
  const { client, asked } = recorded(() => Response.json({ object: "list", ...pages.shift() }));
  const months = await collect(client.statements.list({ limit: 2 }));
  expect(months.map(({ month }) => month)).toEqual(["2026-10", "2026-09", "2026-08"]);
  expect(asked.map(({ path }) => path)).toEqual(["/v1/statements?limit=2", "/v1/statements?limit=2&after=2026-09"]);
});

test("the last turns before one are a single page, and turns after one continue", async () => {
  const { client, asked } = recorded(({ path }) => {
    const has_more = path.includes("before") || !path.includes("after=3");
    return Response.json({ object: "list", data: [{ index: 3 }], first_id: "3", last_id: "3", has_more });
  });
  await collect(client.rollouts.turns.list("ro", { before: 4 }));
  expect(await collect(client.rollouts.turns.list("ro", { limit: 1 }))).toHaveLength(2);
  expect(asked.map(({ path }) => path)).toEqual([
    "/v1/rollouts/ro/turns?before=4",
    "/v1/rollouts/ro/turns?limit=1",
    "/v1/rollouts/ro/turns?limit=1&after=3",
  ]);
});

test("an iterator starts at the given cursor, and one page can be read alone", async () => {
  const { client, asked } = paged();
  expect(await collect(client.datasets.list({ after: "e" }))).toEqual([{ id: "f" }, { id: "g" }]);
  expect(await client.endpoints.list({ limit: 2, order: "asc" })).toMatchObject({ has_more: true });
  expect(asked.at(-1)?.path).toBe("/v1/endpoints?limit=2&order=asc");
});

test("an export continues after an empty page", async () => {
  const { client, asked } = recorded(({ path }) => {
    const { searchParams } = new URL(path, "http://x");
    if (searchParams.has("after")) return new Response('{"reward":1}\n');
    searchParams.set("after", "9-10000-0");
    const link = `<http://x/v1/runs/r/export?${searchParams}>; rel="next"`;
    return new Response("", { headers: { link } });
  });
  const query = { format: "sft", min_reward: 1, dedupe: true } as const;
  expect(await collect(client.runs.export("r", query))).toEqual([{ reward: 1 }]);
  expect(asked.map(({ path }) => path)).toEqual([
    "/v1/runs/r/export?format=sft&min_reward=1&dedupe=true",
    "/v1/runs/r/export?format=sft&min_reward=1&dedupe=true&after=9-10000-0",
  ]);
});

test("an export reports what each page left out", async () => {
  const note = { rows: 1, reasons: { invalid_json: 1 }, rollouts: ["ro_1"] };
  const { client } = recorded(({ path }) => {
    if (path.includes("after")) return new Response("{}\n");
    const link = '</v1/runs/r/export?after=1-1-0>; rel="next"';
    return new Response("", { headers: { link, "x-left-out": JSON.stringify(note) } });
  });
  const told: object[] = [];
  const rows = client.runs.export("r", {}, { onLeftOut: (left) => told.push(left) });
  expect(await collect(rows)).toEqual([{}]);
  expect(told).toEqual([note]);
});

const rowsOf = (...indexes: number[]) =>
  indexes.map((index) => `${JSON.stringify({ index, row: { text: "ü" } })}\n`).join("");

test("rows continue with the link's query only: the key goes to no other address", async () => {
  const { client, asked } = recorded(({ path }) => {
    const more = !path.includes("after");
    const link = '<http://elsewhere.test/v1/datasets/d/rows?after=1&limit=2>; rel="next"';
    return new Response(more ? rowsOf(0, 1) : rowsOf(2), { headers: more ? { link } : {} });
  });
  const rows = await collect(client.datasets.rows("d", { limit: 2 }));
  expect(rows.map(({ index }) => index)).toEqual([0, 1, 2]);
  expect(rows[0]?.row).toEqual({ text: "ü" });
  expect(asked.map(({ path }) => path)).toEqual(["/v1/datasets/d/rows?limit=2", "/v1/datasets/d/rows?after=1&limit=2"]);
});

test("an incomplete page of rows is read again, and no row comes twice", async () => {
  const { client } = recorded((_asked, index) =>
    index === 0 ? new Response(rowsOf(0, 1).slice(0, -5)) : new Response(rowsOf(0, 1)),
  );
  const rows = await collect(client.datasets.rows("d"));
  expect(rows.map(({ index }) => index)).toEqual([0, 1]);
});

test("a page without rows ends the iteration", async () => {
  const { client } = recorded(() => new Response(""));
  expect(await collect(client.runs.results("run_1"))).toEqual([]);
});
