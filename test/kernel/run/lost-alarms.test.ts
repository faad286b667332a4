/** Alarms that the runtime lost: the object sets them again at its next call, and the cron makes that call for runs. */
import { createScheduledController } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import worker from "../../../src/index.ts";
import { wakeRuns } from "../../../src/kernel/service/wake-runs.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { questions } from "../rows.ts";
import { script } from "../script.ts";

const MINUTE_MS = 60_000;

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

/** A run whose only call never ends, and whose object has set its alarm. */
async function runningRun(): Promise<string> {
  const model = script([{ fault: { kind: "hang" } }]);
  const { id } = await api.start({ environment: "gsm8k", dataset: questions(1), model });
  await api.inRun(id, (run) => run.alarm());
  expect(await alarmOf(id)).not.toBeNull();
  return id;
}

const alarmOf = (id: string) => api.inRun(id, (_, { storage }) => storage.getAlarm());
const loseAlarm = (id: string) => api.inRun(id, (_, { storage }) => storage.deleteAlarm());

async function writtenAt(id: string): Promise<number | null> {
  const row = await env.DB.prepare("select written_at from runs where id = ?").bind(id).first<{ written_at: number }>();
  return row?.written_at ?? null;
}

/** Runs of other files are left alone: some of their rows have no object. */
async function setWrittenAt(id: string, at: number): Promise<void> {
  const others = env.DB.prepare("update runs set written_at = ? where org_id != ?").bind(Date.now(), api.scope.orgId);
  await others.run();
  await env.DB.prepare("update runs set written_at = ? where id = ?").bind(at, id).run();
}

test("an alarm that is a minute past is set again by the next call, and not before", async () => {
  const id = await runningRun();
  await loseAlarm(id);
  const armedAt = Date.now() + 10 * MINUTE_MS;
  await api.inRun(id, async (run) => {
    await run.wake();
  });
  expect(await alarmOf(id)).toBeNull();
  await api.inRun(id, async (run) => {
    run.now = () => armedAt;
    await run.setMaxConcurrent(1);
  });
  expect(await alarmOf(id)).not.toBeNull();
  await api.post(`/v1/runs/${id}/cancel`, {});
});

test("the cron wakes unfinished runs that were silent for five minutes, each once in five minutes", async () => {
  const [silent, fresh] = [await runningRun(), await runningRun()];
  const now = Date.now();
  await setWrittenAt(silent, now - 6 * MINUTE_MS);
  await setWrittenAt(fresh, now - 4 * MINUTE_MS);
  for (const id of [silent, fresh]) {
    await loseAlarm(id);
    // A fresh instance, as after an eviction: nothing but a call starts it.
    await api.inRun(id, (_, state) => state.abort("killed")).catch(() => undefined);
  }
  await wakeRuns(env, now);
  await expect.poll(() => alarmOf(silent)).not.toBeNull();
  expect(await writtenAt(silent)).toBeGreaterThanOrEqual(now);
  expect(await writtenAt(fresh)).toBe(now - 4 * MINUTE_MS);
  for (const id of [silent, fresh]) await api.post(`/v1/runs/${id}/cancel`, {});
});

test("the cron creates the object of a run that was accepted while the process ended", async () => {
  const id = await runningRun();
  await api.inRun(id, async (_, { storage }) => {
    await storage.deleteAlarm();
    await storage.deleteAll();
  });
  await api.inRun(id, (_, state) => state.abort("killed")).catch(() => undefined);
  await env.DB.prepare("update runs set status = 'queued' where id = ?").bind(id).run();
  await setWrittenAt(id, 0);
  expect(await api.inRun(id, (run) => run.view())).toBeNull();
  await wakeRuns(env, Date.now());
  expect(await api.inRun(id, (run) => run.view())).not.toBeNull();
  await api.post(`/v1/runs/${id}/cancel`, {});
});

test("the cron ends a run whose object was lost", async () => {
  const id = await runningRun();
  await api.inRun(id, async (_, { storage }) => {
    await storage.deleteAlarm();
    await storage.deleteAll();
  });
  await api.inRun(id, (_, state) => state.abort("killed")).catch(() => undefined);
  await env.DB.prepare("update runs set status = 'running' where id = ?").bind(id).run();
  await setWrittenAt(id, 0);
  await wakeRuns(env, Date.now());
  const row = await env.DB.prepare("select status, error, finished_at from runs where id = ?").bind(id).first();
  expect(row).toMatchObject({ status: "failed", error: expect.stringContaining("run_unreadable") });
  expect(row?.["finished_at"]).not.toBeNull();
});

test("the Worker's cron does that each minute", async () => {
  const id = await runningRun();
  await setWrittenAt(id, 0);
  await worker.scheduled(createScheduledController(), env);
  expect(await writtenAt(id)).toBeGreaterThan(0);
  await api.post(`/v1/runs/${id}/cancel`, {});
});
