/** A database that refuses writes for a while: these tests need a file, and with it a database, of their own. */

import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { Subrequests } from "../../../src/kernel/kit/subrequests.ts";
import { noteDeadLetter } from "../../../src/kernel/run/control.ts";
import { writeRow } from "../../../src/kernel/run/housekeeping.ts";
import { ACCOUNTING_HOOKS } from "../../../src/kernel/run/object.ts";
import { LiveViews } from "../../../src/kernel/run/report.ts";
import { RunStore } from "../../../src/kernel/run/store.ts";
import { segmentLines } from "../hand-made.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const HOUR = 3600_000;

/** Fires the run's alarm, as if `wait` ms had passed. */
function alarmAfter(platform: TestApi, id: string, wait: number): Promise<void> {
  return platform.inRun(id, async (run) => {
    run.now = () => Date.now() + wait;
    await run.alarm();
  });
}

async function rowOf(id: string) {
  const row = await env.DB.prepare("select * from runs where id = ?").bind(id).first();
  return { ...row, counts: JSON.parse(String(row?.["counts"])), report: JSON.parse(String(row?.["report"])) };
}

const nothing = () => null;
const NO_PARTS = {
  hindrance: nothing,
  judgeStatusReason: nothing,
  trainingStatusReason: nothing,
  training: nothing,
};

test("the run's row is written once the database accepts writes again, and agrees with its object", async () => {
  const platform = await openPlatform();
  const request = { environment: "gsm8k", dataset: questions(3), model: script(RIGHT) };
  await env.DB.prepare("create trigger away before update on runs begin select raise(abort, 'away'); end").run();
  const { id } = await platform.finish(request);
  await alarmAfter(platform, id, HOUR);
  const current = () =>
    platform.inRun(id, (_, { storage }) => new RunStore(storage, ACCOUNTING_HOOKS).head().row_current);
  expect(await current()).toBe(false);
  const refused = await env.DB.prepare("select status, counts from runs where id = ?").bind(id).first();
  expect(refused).toEqual({ status: "queued", counts: null });
  await env.DB.exec("drop trigger away");
  await alarmAfter(platform, id, 2 * HOUR);
  expect(await current()).toBe(true);
  const { status, error, counts, report } = await platform.run(id);
  expect(await rowOf(id)).toMatchObject({ status, error, counts, report });
  expect({ status, scored: counts.scored }).toEqual({ status: "completed", scored: 3 });
});

test("a run writes its row and no row of a rollout: the database has no table of them", async () => {
  const tables = await env.DB.prepare("select name from sqlite_master where type = 'table'").all();
  const names = tables.results.map(({ name }) => name);
  expect(names).toContain("runs");
  expect(names).not.toContain("rollouts");
});

test("the run's row does not count as current if the run changed while it was written", async () => {
  const platform = await openPlatform();
  const request = { environment: "gsm8k", dataset: questions(1), model: script(RIGHT) };
  const run = await platform.finish(request);
  await alarmAfter(platform, run.id, HOUR);
  const { scope } = platform;
  const said = await platform.inRun(run.id, async (_, { storage }) => {
    const store = new RunStore(storage, ACCOUNTING_HOOKS);
    const spec = store.spec();
    if (spec === null) throw new Error("no such run");
    const views = new LiveViews(store, () => Date.now(), NO_PARTS);
    const write = async (meanwhile: () => void) => {
      const written = new Subrequests();
      const fetch = written.fetch.bind(written);
      written.fetch = async (work) => {
        const result = await fetch(work);
        meanwhile();
        return result;
      };
      await writeRow(env, store, spec, () => views.of(spec), written);
      const { row_current, dead_letters } = store.head();
      return { row_current, dead_letters };
    };
    const letter = { kind: "scores", scope, run_id: run.id, units: [1] } as const;
    const add = () => noteDeadLetter(store, "rollout-scores", letter, Date.now());
    add();
    return [await write(add), await write(() => undefined)];
  });
  expect(said).toEqual([
    { row_current: false, dead_letters: 2 },
    { row_current: true, dead_letters: 2 },
  ]);
  const row = await env.DB.prepare("select * from runs where id = ?").bind(run.id).first();
  expect(row).toMatchObject({ dead_letters: 2 });
});

test("changes of an old run that follow each other are one write of its row, at most 15 s after the first", async () => {
  const platform = await openPlatform();
  const { id } = await platform.finish({ environment: "gsm8k", dataset: questions(1), model: script(RIGHT) });
  await segmentLines(platform, id);
  await alarmAfter(platform, id, HOUR);
  const { scope } = platform;
  const change = (wait: number) =>
    platform.inRun(id, async (run, { storage }) => {
      run.now = () => Date.now() + wait;
      await run.deadLetter("rollout-scores", { kind: "scores", scope, run_id: id, units: [1] });
      return Number(await storage.getAlarm()) - Date.now() - wait;
    });
  const letters = () => env.DB.prepare("select dead_letters from runs where id = ?").bind(id).first("dead_letters");
  const left = await change(2 * HOUR);
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThanOrEqual(15_000);
  await change(2 * HOUR + 5000);
  expect(await letters()).toBe(0);
  await alarmAfter(platform, id, 2 * HOUR + 15_000);
  expect(await letters()).toBe(2);
});

test("an alarm that an earlier instance set writes the row", async () => {
  const platform = await openPlatform();
  const { id } = await platform.finish({ environment: "gsm8k", dataset: questions(1), model: script(RIGHT) });
  await segmentLines(platform, id);
  await alarmAfter(platform, id, HOUR);
  await platform.inRun(id, (_, { storage }) => {
    const store = new RunStore(storage, ACCOUNTING_HOOKS);
    store.saveHead({ ...store.head(), dead_letters: 1, row_current: false });
  });
  await evictDurableObject(platform.runStub(id));
  await alarmAfter(platform, id, 2 * HOUR);
  expect(await env.DB.prepare("select dead_letters from runs where id = ?").bind(id).first("dead_letters")).toBe(1);
});

test("a settled run with a current row keeps one alarm: the one that frees its rollouts a day later", async () => {
  const platform = await openPlatform();
  const request = { environment: "gsm8k", dataset: questions(2), model: script(RIGHT) };
  const run = await platform.finish(request);
  await segmentLines(platform, run.id);
  const firesIn = async (wait: number) => {
    await alarmAfter(platform, run.id, wait);
    return platform.inRun(run.id, async (_, { storage }) => {
      const at = await storage.getAlarm();
      return at === null ? null : at - Date.now();
    });
  };
  const left = await firesIn(HOUR);
  expect(left).toBeGreaterThan(23 * HOUR);
  expect(left).toBeLessThanOrEqual(24 * HOUR);
  await platform.inRun(run.id, (_, { storage }) => storage.deleteAlarm());
  await firesIn(25 * HOUR);
  await platform.inRun(run.id, (_, { storage }) => storage.deleteAlarm());
  expect(await firesIn(26 * HOUR)).toBeNull();
});
