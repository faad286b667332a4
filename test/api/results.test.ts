import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { RESULT_ROW } from "../../src/api/examples.ts";
import type { Services } from "../../src/api/services.ts";
import { LIMITS } from "../../src/core/limits.ts";
import { openDoor } from "./door.ts";

type Page = Parameters<Services["readResults"]>[3];

async function doorWithRows(next: number | null) {
  const pages: Page[] = [];
  const door = await openDoor({
    readResults: async (_env, _scope, _id, page) => {
      pages.push(page);
      return { ok: true, value: { rows: [RESULT_ROW, RESULT_ROW], next } };
    },
  });
  return { ...door, pages };
}

test("results are one JSON object a line, and a page before the last links to the next", async () => {
  const { ask, pages } = await doorWithRows(7);
  const reply = await ask("/v1/runs/run_x/results?outcome=scored&after=5&limit=2");
  expect(reply.headers.get("content-type")).toBe("application/jsonl");
  expect(reply.headers.get("link")).toBe(
    '<http://platform.test/v1/runs/run_x/results?outcome=scored&after=7&limit=2>; rel="next"',
  );
  const lines = new TextDecoder().decode(await reply.arrayBuffer()).split("\n");
  expect(lines.pop()).toBe("");
  expect(lines.map((line) => JSON.parse(line))).toEqual([RESULT_ROW, RESULT_ROW]);
  expect(pages).toEqual([{ after: 5, limit: 2, outcome: "scored" }]);
});

test("so many pages are read at once; the next one begins when one of them is read, or its reader is gone", async () => {
  const reads: string[] = [];
  const { app, token } = await openDoor({
    readResults: async (_env, _scope, id) => {
      reads.push(id);
      const rows = Array.from({ length: 500 }, () => RESULT_ROW);
      return { ok: true, value: { rows, next: null } };
    },
  });
  // As it comes: nothing of it is read yet.
  const ask = async (path: string) =>
    app.request(path, { headers: { authorization: `Bearer ${token}` } }, env);
  const held = await Promise.all(
    Array.from({ length: LIMITS.pagesAtOnce }, () => ask("/v1/runs/run_held/results")),
  );
  const asked = Promise.withResolvers<Response>();
  ask("/v1/runs/run_next/results").then(asked.resolve, asked.reject);
  await held[0]?.arrayBuffer();
  expect((await asked.promise).status).toBe(200);
  expect(reads).toEqual([...held.map(() => "run_held"), "run_next"]);
  await Promise.all(
    [asked.promise, ...held.slice(1)].map(async (reply) => (await reply).body?.cancel()),
  );
  const again = Array.from({ length: LIMITS.pagesAtOnce }, () => ask("/v1/runs/run_x/results"));
  for (const reply of await Promise.all(again)) {
    const text = new TextDecoder().decode(await reply.arrayBuffer());
    expect(text.split("\n")).toHaveLength(501);
  }
});

test("the last page has no link, and a bare request starts at the beginning", async () => {
  const { ask, pages } = await doorWithRows(null);
  const reply = await ask("/v1/runs/run_x/results");
  expect(reply.headers.get("link")).toBeNull();
  expect(pages).toEqual([{ after: 0, limit: 100, outcome: null }]);
});

test.each(["outcome=good", "after=-1", "limit=1001"])("the query %s is refused", async (query) => {
  const { ask, pages } = await doorWithRows(null);
  const reply = await ask(`/v1/runs/run_x/results?${query}`);
  expect(reply.status).toBe(400);
  expect(await reply.json()).toMatchObject({ error: { param: query.split("=")[0] } });
  expect(pages).toEqual([]);
});
