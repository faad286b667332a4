import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Services } from "../../../src/kernel/service/services.ts";
import { useMemory } from "../memory-budget.ts";
import { RESULT_ROW } from "./examples.ts";
import { openTestApi } from "./test-api.ts";

type Page = Parameters<Services["readResults"]>[3];

async function linesOf(reply: Response): Promise<unknown[]> {
  const lines = new TextDecoder().decode(await reply.arrayBuffer()).split("\n");
  expect(lines.pop()).toBe("");
  return lines.map((line): unknown => JSON.parse(line));
}

async function apiWithRows(next: number | null) {
  const pages: Page[] = [];
  const api = await openTestApi({
    readResults: async (_env, _scope, _id, page) => {
      pages.push(page);
      return { ok: true, value: { rows: [RESULT_ROW, RESULT_ROW], next } };
    },
  });
  return { ...api, pages };
}

test("results are one JSON object on each line, and a page before the last links to the next", async () => {
  const { ask, pages } = await apiWithRows(7);
  const reply = await ask("/v1/runs/run_x/results?outcome=scored&after=5&limit=2");
  expect(reply.headers.get("content-type")).toBe("application/jsonl");
  expect(reply.headers.get("link")).toBe(
    '<http://platform.test/v1/runs/run_x/results?outcome=scored&after=7&limit=2>; rel="next"',
  );
  expect(await linesOf(reply)).toEqual([RESULT_ROW, RESULT_ROW]);
  expect(pages).toEqual([{ after: 5, limit: 2, outcome: "scored" }]);
});

/** Finished pages have 4 MiB: two of these lines. */
useMemory(48 * 1024 * 1024);
const LARGE = 2 * 1024 * 1024;
const OTHERS = JSON.stringify({ ...RESULT_ROW, answer: "" }).length + 1;
const LARGE_ROW = { ...RESULT_ROW, answer: "x".repeat(LARGE - OTHERS) };

/** Pages of the run whose id says how long they are. The replies are not read. */
async function apiWithPages() {
  const made: string[] = [];
  const held = Promise.withResolvers<void>();
  const { app, token, clock } = await openTestApi({
    readResults: async (_env, _scope, id) => {
      made.push(id);
      if (id === "run_held") await held.promise;
      const rows = id === "run_large" ? [LARGE_ROW] : [RESULT_ROW];
      return { ok: true, value: { rows, next: null } };
    },
  });
  const ask = async (id: string) =>
    app.request(`/v1/runs/${id}/results`, { headers: { authorization: `Bearer ${token}` } }, env);
  return { ask, clock, made, letGo: held.resolve };
}

const times = <T>(count: number, make: () => Promise<T>) => Promise.all(Array.from({ length: count }, make));

test("an organisation's page takes half of the memory, its next page waits for it, and another organisation's do not wait", async () => {
  const { ask, made, letGo } = await apiWithPages();
  const other = await apiWithPages();
  const mine = 1;
  const held = times(mine, () => ask("run_held"));
  await expect.poll(() => made.length).toBe(mine);
  const next = ask("run_next");
  expect(await linesOf(await other.ask("run_small"))).toHaveLength(1);
  // Without a place to wait for, it would be finished by now.
  for (let turn = 0; turn < 20; turn += 1) await scheduler.wait(0);
  expect(made).toHaveLength(mine);
  letGo();
  for (const reply of [...(await held), await next]) {
    expect(await linesOf(reply)).toHaveLength(1);
  }
  expect(made.at(-1)).toBe("run_next");
});

test("readers that take nothing block no other page: the first one's memory is given to others, and its page ends cut", async () => {
  const apis = await times(3, apiWithPages);
  const [first, second, third] = apis;
  const unread = [await first?.ask("run_large"), await second?.ask("run_large")];
  const small = third?.ask("run_small");
  for (const { clock } of apis) clock.now += LIMITS.unreadMs;
  expect(await linesOf((await small) ?? new Response())).toHaveLength(1);
  const lengths = unread.map(async (reply) => (await reply?.arrayBuffer())?.byteLength);
  await expect(lengths[0]).rejects.toThrow("request it again");
  expect(await lengths[1]).toBe(LARGE);
});

test("the last page has no link, and a request without a query starts at the beginning", async () => {
  const { ask, pages } = await apiWithRows(null);
  const reply = await ask("/v1/runs/run_x/results");
  expect(reply.headers.get("link")).toBeNull();
  expect(pages).toEqual([{ after: 0, limit: 100, outcome: null }]);
});

test.each(["outcome=good", "after=-1", "limit=1001"])("the query %s is refused", async (query) => {
  const { ask, pages } = await apiWithRows(null);
  const reply = await ask(`/v1/runs/run_x/results?${query}`);
  expect(reply.status).toBe(400);
  expect(await reply.json()).toMatchObject({ error: { param: query.split("=")[0] } });
  expect(pages).toEqual([]);
});
