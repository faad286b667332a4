import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { RunView } from "../../../src/contract/run.ts";
import type { Scope } from "../../../src/contract/scope.ts";
import { databaseOf } from "../../../src/kernel/db/database.ts";
import { insertRun, type NewRun, runViewOf } from "../../../src/kernel/db/runs.ts";
import { endpointRow, runRow } from "./run-rows.ts";
import { openTestApi } from "./test-api.ts";

interface Page {
  data: RunView[];
  first_id: string | null;
  last_id: string | null;
  has_more: boolean;
}

async function addRun(scope: Scope, changes: Partial<NewRun>): Promise<string> {
  const endpoint = endpointRow();
  const run = runRow(endpoint, changes);
  await insertRun(databaseOf(env), scope, run, endpoint);
  return run.id;
}

const idsOf = async (reply: Response) => (await reply.json<Page>()).data.map(({ id }) => id);

test("an empty list is a page with null as first and last id", async () => {
  const { ask } = await openTestApi();
  expect(await (await ask("/v1/runs")).json()).toEqual({
    object: "list",
    data: [],
    first_id: null,
    last_id: null,
    has_more: false,
  });
});

test("pages go from the newest run to the oldest, each run once", async () => {
  const { ask, scope } = await openTestApi();
  const made: string[] = [];
  // Two share a millisecond, so the id decides their order.
  for (const created_at of [1000, 2000, 2000, 3000, 4000]) {
    made.push(await addRun(scope, { created_at, id: `run_${made.length}_${scope.orgId}` }));
  }
  const seen: string[] = [];
  let after = "";
  for (const more of [true, true, false]) {
    const page = await (await ask(`/v1/runs?limit=2${after}`)).json<Page>();
    expect(page.has_more).toBe(more);
    expect([page.first_id, page.last_id]).toEqual([page.data[0]?.id, page.data.at(-1)?.id]);
    seen.push(...page.data.map(({ id }) => id));
    after = `&after=${page.last_id}`;
  }
  expect(seen).toEqual(made.toReversed());
  expect(await idsOf(await ask("/v1/runs?order=asc"))).toEqual(made);
  expect(await idsOf(await ask(`/v1/runs?order=asc&after=${made[1]}`))).toEqual(made.slice(2));
});

test("runs are found by status, by environment and version, and by every metadata pair", async () => {
  const { ask, scope } = await openTestApi();
  const main = await addRun(scope, { metadata: { branch: "main", 'a.b"c': "x" } });
  const other = await addRun(scope, {
    status: "completed",
    environment_id: "calculator",
    environment_version: "10.0.0",
    metadata: { branch: "other" },
  });
  const found = async (query: string) => idsOf(await ask(`/v1/runs?${query}`));
  expect(await found("status=completed")).toEqual([other]);
  expect(await found("status=failed")).toEqual([]);
  expect(await found("kind=eval&environment=gsm8k")).toEqual([main]);
  expect(await found("environment=gsm8k@1")).toEqual([main]);
  expect(await found("environment=gsm8k@1.0.2")).toEqual([main]);
  expect(await found("environment=calculator@1")).toEqual([]);
  expect(await found("metadata[branch]=main")).toEqual([main]);
  const odd = encodeURIComponent('metadata[a.b"c]');
  expect(await found(`metadata[branch]=main&${odd}=x`)).toEqual([main]);
  expect(await found(`metadata[branch]=other&${odd}=x`)).toEqual([]);
});

/** A report with this mean reward and this cost of the model. */
function scoredRun(mean: number | null, cost_micros: number | null): Pick<NewRun, "report"> {
  const run = { ...runRow(endpointRow()), org_id: "", project_id: "" };
  const { report } = runViewOf({ run, endpoint: null, fleet: null });
  const usage = { ...report.usage, cost_micros, charged_micros: 1 };
  return { report: { ...report, reward: { ...report.reward, mean }, usage } };
}

test("runs are found by model, and by a part of a name, model, environment, id or pair of metadata", async () => {
  const { ask, scope } = await openTestApi();
  const plain = runRow(endpointRow()).spec;
  const nightly = await addRun(scope, { name: "Nightly 100 %_", spec: { ...plain, model: "qwen3-4b" } });
  const other = await addRun(scope, { environment_id: "calculator", metadata: { branch: "main" } });
  const found = async (query: string) => idsOf(await ask(`/v1/runs?${query}`));
  expect(await found("model=qwen3-4b")).toEqual([nightly]);
  expect(await found("model=qwen3")).toEqual([]);
  expect(await found("search=NIGHTLY")).toEqual([nightly]);
  expect(await found(`search=${encodeURIComponent("100 %_")}`)).toEqual([nightly]);
  expect(await found("search=wen3-")).toEqual([nightly]);
  expect(await found("search=branch%3Dma")).toEqual([other]);
  expect(await found("search=calcul&kind=eval")).toEqual([other]);
  expect(await found(`search=${other}`)).toEqual([other]);
  expect(await found("search=calcul&kind=training")).toEqual([]);
});

test("runs are sorted by reward, cost and name across pages, and those without a value come last", async () => {
  const { ask, scope } = await openTestApi();
  const best = await addRun(scope, { created_at: 1000, name: "b", ...scoredRun(0.9, 5) });
  const even = await addRun(scope, { created_at: 2000, name: "C", ...scoredRun(0.1 + 0.2, 100) });
  const later = await addRun(scope, { created_at: 3000, name: "a", ...scoredRun(0.1 + 0.2, null) });
  const none = await addRun(scope, { created_at: 4000, ...scoredRun(null, 7) });
  const queued = await addRun(scope, { created_at: 5000 });
  const read = async (query: string) => {
    const seen: string[] = [];
    for (let after = "", more = true; more; ) {
      const page = await (await ask(`/v1/runs?limit=1&${query}${after}`)).json<Page>();
      seen.push(...page.data.map(({ id }) => id));
      [after, more] = [`&after=${page.last_id}`, page.has_more];
    }
    return seen;
  };
  expect(await read("sort=reward")).toEqual([best, later, even, queued, none]);
  expect(await read("sort=reward&order=asc")).toEqual([even, later, best, none, queued]);
  expect(await read("sort=cost")).toEqual([even, none, best, later, queued]);
  expect(await read("sort=name&order=asc")).toEqual([later, best, even, none, queued]);
});

test("a tenant sees no run of another, and cannot start a page from one", async () => {
  const [mine, theirs] = [await openTestApi(), await openTestApi()];
  const id = await addRun(theirs.scope, {});
  expect(await idsOf(await mine.ask("/v1/runs"))).toEqual([]);
  const reply = await mine.ask(`/v1/runs?after=${id}`);
  expect(reply.status).toBe(400);
  expect(await reply.json()).toMatchObject({ error: { param: "after" } });
});

test("a listed run has the shape of a run that is read, and nothing of the sealed key", async () => {
  const { ask, scope } = await openTestApi();
  await addRun(scope, { created_at: 1_792_000_000_999 });
  const text = await (await ask("/v1/runs")).text();
  expect(text).not.toContain("sealed");
  expect(JSON.parse(text).data[0]).toMatchObject({
    object: "run",
    status: "queued",
    num_examples: 3,
    rollouts_per_example: 2,
    endpoint: { base_url: "https://gpu.example/v1", api_key_last4: "9f2c" },
    counts: { planned: 6, pending: 6, dispatched: 0 },
    created_at: 1_792_000_000,
    finished_at: null,
  });
});

test.each([
  ["limit=0", "invalid_request", "limit"],
  ["limit=101", "invalid_request", "limit"],
  ["limit=ten", "invalid_request", "limit"],
  ["status=done", "invalid_request", "status"],
  ["order=up", "invalid_request", "order"],
  ["environment=a%25", "invalid_request", "environment"],
  ["statsu=queued", "unknown_field", "statsu"],
])("the query %s is refused by name", async (query, code, param) => {
  const { ask } = await openTestApi();
  const reply = await ask(`/v1/runs?${query}`);
  expect(reply.status).toBe(400);
  expect(await reply.json()).toMatchObject({ error: { code, param } });
});
