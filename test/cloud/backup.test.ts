/** A deployment is copied to a store while it works, and restored into an empty one: real workerds, a fake S3 store. */
import { expect, test, vi } from "vitest";
import { TEST_HANGS_MS, WAIT, WAIT_HANGS_MS } from "../hang-limits.ts";
import { makeHistory, openBackupStand, seenBy } from "./backup-stand.ts";

test("an empty deployment gets everything, and runs that had not ended continue and are charged once", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const stand = await openBackupStand();
  const prod = await stand.deployment("prod");
  const { key, model, ended, unfinished } = await makeHistory(prod);
  const before = await seenBy(prod, key, ended);
  const made = await stand.backUp("prod");
  expect([made.code, made.stderr]).toEqual([0, expect.stringContaining("objects")]);
  await prod.stop();

  const next = await stand.deployment("next");
  const restored = await stand.restore("next");
  expect([restored.code, restored.stderr, next.said]).toEqual([0, expect.any(String), []]);
  const again = next.client(key);
  expect(await seenBy(next, key, ended)).toEqual(before);
  expect(next.said).toEqual([]);

  model.setLatency(0);
  for await (const _ of again.runs.events(unfinished, { signal: AbortSignal.timeout(WAIT_HANGS_MS) }));
  const run = await again.runs.get(unfinished);
  expect([run.status, run.counts]).toMatchObject(["completed", { planned: 8, scored: 8, in_flight: 0 }]);
  await vi.waitUntil(async () => (await again.runs.audit(unfinished)).holds, WAIT);
  const charged = async () => {
    const entries: string[] = [];
    for await (const { kind, run_id, source_id } of again.ledger.list()) {
      if (kind === "rollout") entries.push(`${run_id} ${source_id}`);
    }
    return entries;
  };
  await vi.waitUntil(async () => (await charged()).length === 12, WAIT);
  expect(new Set(await charged()).size).toBe(12);
  expect(model.changed).toEqual([]);
  expect((await again.ledger.verify()).ok).toBe(true);
});

test("a restore that was killed after its objects were started is finished, and keeps what they did since", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const stand = await openBackupStand();
  const prod = await stand.deployment("prod");
  const { key, model, unfinished } = await makeHistory(prod);
  expect((await stand.backUp("prod")).code).toBe(0);
  await prod.stop();

  const next = await stand.deployment("next");
  stand.killAt(next, (request) => request === "POST /operator/backup/start");
  expect((await stand.restore("next")).code).toBe(null);
  model.setLatency(0);
  const client = next.client(key);
  for await (const _ of client.runs.events(unfinished, { signal: AbortSignal.timeout(WAIT_HANGS_MS) }));
  const ended = await client.runs.get(unfinished);
  expect(ended.status).toBe("completed");
  const finished = await stand.restore("next");
  expect([finished.code, finished.stderr]).toEqual([0, expect.any(String)]);
  expect(await client.runs.get(unfinished)).toEqual(ended);
  expect((await stand.restore("next")).stderr).toContain("restored already");
});
