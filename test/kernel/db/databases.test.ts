/** Queries over all organisations find those of every D1 database, in one order and in pages. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { listOrganizations, numberForOrganization } from "../../../src/accounts/queries/organizations.ts";
import type { Scope } from "../../../src/contract/scope.ts";
import { Database, databaseOf } from "../../../src/kernel/db/database.ts";
import type { Position } from "../../../src/kernel/db/page.ts";
import { insertRun, takeSilentRuns, updateRun } from "../../../src/kernel/db/runs.ts";
import { sealsBehind } from "../../../src/kernel/db/seals.ts";
import { listUnfinishedRuns } from "../../../src/operator/queries.ts";
import { countUnfinishedRuns, listEndpointsInUse, readTotals } from "../../../src/telemetry/queries.ts";
import { admit } from "../../accounts/admit.ts";
import { endpointRow, runRow } from "../http/run-rows.ts";

const NONE = {
  ...{ planned: 0, pending: 0, dispatched: 0, in_flight: 0, scored: 0 },
  unscored: {},
  failed: {},
  cancelled: {},
};

/** A run in each D1 database. */
async function runInEach(written_at: number | null = null): Promise<{ id: string; endpoint: string; scope: Scope }[]> {
  return await Promise.all(
    ["org_", "org_1_"].map(async (prefix) => {
      const scope = { orgId: `${prefix}${crypto.randomUUID()}`, projectId: `pj_${crypto.randomUUID()}` };
      await admit(scope);
      const endpoint = endpointRow({ sealed_key: "unknown.iv.sealed" });
      const run = runRow(endpoint, { written_at });
      expect(await insertRun(databaseOf(env), scope, run, endpoint)).toBe("inserted");
      return { id: run.id, endpoint: endpoint.id, scope };
    }),
  );
}

test("unfinished runs of all databases are listed by id, page by page", async () => {
  const own = await runInEach();
  const listed: string[] = [];
  for (let after = ""; ; ) {
    const page = await listUnfinishedRuns(databaseOf(env), after, 1);
    if (page.length === 0) break;
    listed.push(...page.map(({ id }) => id));
    after = listed.at(-1) ?? "";
  }
  expect(listed).toEqual([...new Set(listed)].sort());
  expect(listed).toEqual(expect.arrayContaining(own.map(({ id }) => id)));
});

test("silent runs of each database are taken, however many the others have", async () => {
  await runInEach(-3);
  const own = await runInEach(-4);
  const taken = await takeSilentRuns(databaseOf(env), { now: 10, before: 0, limit: 2 });
  expect(taken).toHaveLength(2);
  expect(taken).toEqual(expect.arrayContaining(own.map(({ id, scope }) => ({ id, scope }))));
});

test("no more silent runs are taken than the limit, also if it cannot be divided by the number of databases", async () => {
  await runInEach(-6);
  await runInEach(-5);
  expect(await takeSilentRuns(databaseOf(env), { now: 10, before: 0, limit: 3 })).toHaveLength(2);
});

test("values that are not sealed under the current key are found in all databases, each once", async () => {
  const own = await runInEach();
  const found: string[] = [];
  const counts = new Set<number>();
  for (let after: string | null = null, more = true; more; ) {
    const page = await sealsBehind(databaseOf(env), { current: "current", before: ["unknown"], after, limit: 2 });
    expect(page.values.length).toBeLessThanOrEqual(2);
    found.push(...page.values.map(({ kind, id }) => `${kind} ${id}`));
    counts.add(page.remaining);
    after = page.next;
    more = after !== null;
  }
  expect(new Set(found).size).toBe(found.length);
  expect(found).toEqual(expect.arrayContaining(own.map(({ endpoint }) => `endpoint ${endpoint}`)));
  expect([...counts][0]).toBeGreaterThanOrEqual(2);
});

test("the counts of metrics are sums over all databases", async () => {
  const own = await runInEach();
  const mark = crypto.randomUUID();
  for (const { id, scope } of own) {
    await updateRun(databaseOf(env), scope, id, {
      status: "running",
      counts: { ...NONE, pending: 5, failed: { [mark]: 2 } },
    });
  }
  const counted = async () => (await readTotals(databaseOf(env))).filter(({ name }) => name === mark);
  expect(await counted()).toEqual([{ kind: "failed", name: mark, n: 4 }]);
  const running = (await countUnfinishedRuns(databaseOf(env))).filter(({ status }) => status === "running");
  expect(running).toEqual([expect.objectContaining({ runs: expect.any(Number), pending: expect.any(Number) })]);
  expect(running[0]?.pending).toBeGreaterThanOrEqual(10);
  const inUse = await listEndpointsInUse(databaseOf(env), { since: 1, limit: 10_000 });
  expect(new Set(inUse.map(({ of }) => of))).toEqual(new Set([inUse.length]));
  expect(inUse).toEqual(
    expect.arrayContaining(own.map(({ endpoint, scope }) => ({ endpoint_id: endpoint, scope, of: inUse.length }))),
  );
  for (const { id, scope } of own) await updateRun(databaseOf(env), scope, id, { status: "failed", finished_at: 5 });
  expect(await counted()).toEqual([{ kind: "failed", name: mark, n: 4 }]);
});

test.each(["asc", "desc"] as const)("organisations of all databases are listed by time, %s", async (order) => {
  await runInEach();
  const listed: Position[] = [];
  for (let after: Position | null = null; ; ) {
    const page: Position[] = await listOrganizations(databaseOf(env), { after, limit: 3, order });
    if (page.length === 0) break;
    listed.push(...page.map(({ id, created_at }) => ({ id, created_at })));
    after = listed.at(-1) ?? null;
  }
  const direction = order === "asc" ? 1 : -1;
  const sorted = listed.toSorted((a, b) => direction * (a.created_at - b.created_at || (a.id < b.id ? -1 : 1)));
  expect(listed).toEqual(sorted);
  expect(new Set(listed.map(({ id }) => id.startsWith("org_1_")))).toEqual(new Set([true, false]));
});

test("a new organisation gets the database with the fewest, the first of several", async () => {
  const { main } = databaseOf(env);
  const counting = (n: number) =>
    new Proxy(main, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (name !== "prepare") return member;
        return () => target.prepare(`select ${n}`);
      },
    });
  const of = (first: number, ...others: number[]) => new Database(counting(first), others.map(counting));
  expect(await numberForOrganization(of(9))).toBe(0);
  expect(await numberForOrganization(of(3, 2))).toBe(1);
  expect(await numberForOrganization(of(2, 2, 1, 1))).toBe(2);
  expect(await numberForOrganization(of(1, 1))).toBe(0);
});

test("the number of a database that the deployment does not have is an error that names its binding", () => {
  const database = databaseOf(env);
  expect(database.all).toHaveLength(2);
  expect(() => database.of("org_7_x")).toThrow("D1 database 7 is not bound: this deployment has no DB_7");
  expect([database.has("org_7_x"), database.has("org_1_x"), database.has("org_x")]).toEqual([false, true, true]);
});
