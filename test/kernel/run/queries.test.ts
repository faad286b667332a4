import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { Scope } from "../../../src/contract/scope.ts";
import { databaseOf } from "../../../src/kernel/db/database.ts";
import { getEndpoint } from "../../../src/kernel/db/endpoints.ts";
import { findRunByIdempotencyKey, getRun, insertRun, updateRun } from "../../../src/kernel/db/runs.ts";
import { admit } from "../../accounts/admit.ts";
import { endpointRow, runRow } from "../http/run-rows.ts";

/** An existing project: a missing or deleted one accepts no run. */
async function newScope(orgId = `org_${crypto.randomUUID()}`): Promise<Scope> {
  const scope = { orgId, projectId: `pj_${crypto.randomUUID()}` };
  await admit(scope);
  return scope;
}

test("a run and its endpoint are written together and read only by their owner", async () => {
  const [scope, other] = [await newScope(), await newScope()];
  const endpoint = endpointRow();
  const run = runRow(endpoint, { metadata: { branch: "main" } });
  expect(await insertRun(databaseOf(env), scope, run, endpoint)).toBe("inserted");
  const owner = { org_id: scope.orgId, project_id: scope.projectId };
  expect(await getRun(databaseOf(env), scope, run.id)).toEqual({
    run: { ...run, ...owner },
    endpoint: {
      id: endpoint.id,
      name: null,
      base_url: endpoint.base_url,
      api_key_last4: "9f2c",
    },
    fleet: null,
  });
  const stored = { ...endpoint, ...owner, name: null, deleted_at: null };
  expect(await getEndpoint(databaseOf(env), scope, endpoint.id)).toMatchObject(stored);
  for (const stranger of [other, { ...scope, projectId: "pj_2" }]) {
    expect(await getRun(databaseOf(env), stranger, run.id)).toBeNull();
    expect(await getEndpoint(databaseOf(env), stranger, endpoint.id)).toBeNull();
  }
});

test("a used idempotency key writes neither run nor endpoint", async () => {
  const scope = await newScope();
  const [first, second] = [endpointRow(), endpointRow()];
  const original = runRow(first, { idempotency_key: "k", request_hash: "h" });
  await insertRun(databaseOf(env), scope, original, first);
  const repeat = runRow(second, { idempotency_key: "k" });
  expect(await insertRun(databaseOf(env), scope, repeat, second)).toBe("conflict");
  expect(await getRun(databaseOf(env), scope, repeat.id)).toBeNull();
  expect(await getEndpoint(databaseOf(env), scope, second.id)).toBeNull();
  const found = await findRunByIdempotencyKey(databaseOf(env), scope, "k");
  expect(found?.run).toMatchObject({ id: original.id, request_hash: "h" });
});

test("another project may use the same idempotency key, and runs without one never conflict", async () => {
  const scope = await newScope();
  for (const owner of [scope, await newScope(scope.orgId)]) {
    for (const idempotency_key of ["k", null, null]) {
      const endpoint = endpointRow();
      const run = runRow(endpoint, { idempotency_key });
      expect(await insertRun(databaseOf(env), owner, run, endpoint)).toBe("inserted");
    }
  }
});

test("an update changes only the fields it names, in its own project", async () => {
  const scope = await newScope();
  const endpoint = endpointRow();
  const run = runRow(endpoint);
  await insertRun(databaseOf(env), scope, run, endpoint);
  const error = { code: "too_few_scored", message: "0 of 6" };
  await updateRun(databaseOf(env), scope, run.id, { status: "failed", error, finished_at: 5000 });
  await updateRun(databaseOf(env), await newScope(), run.id, { status: "running" });
  const read = await getRun(databaseOf(env), scope, run.id);
  expect(read?.run).toMatchObject({ status: "failed", error, finished_at: 5000, counts: null });
});
