/** A database that fails: its table is taken away, so these tests have a file, and with it a database, of their own. */

import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { Subrequests } from "../../../src/runtime/kit/subrequests.ts";
import { drain } from "../../../src/runtime/run/chores.ts";
import { noteDeadLetter } from "../../../src/runtime/run/control.ts";
import { LEDGER_HOOKS } from "../../../src/runtime/run/object.ts";
import { LiveViews } from "../../../src/runtime/run/report.ts";
import { RunStore } from "../../../src/runtime/run/store.ts";
import { segmentLines } from "../hand-made.ts";
import { type Door, openPlatform, rolloutAt } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const HOUR = 3600_000;

/** Fires the run's alarm, as if `wait` ms had passed. */
function alarmAfter(platform: Door, id: string, wait: number): Promise<void> {
  return platform.inRun(id, async (run) => {
    run.now = () => Date.now() + wait;
    await run.alarm();
  });
}

function undrained(platform: Door, id: string): Promise<unknown> {
  return platform.inRun(
    id,
    (_, { storage }) => storage.sql.exec("select count(*) as n from rollouts where drained = 0").one()["n"],
  );
}

async function rowsOf(id: string): Promise<Record<string, unknown>[]> {
  const rows = env.DB.prepare("select * from rollouts where run_id = ? order by group_index");
  return (await rows.bind(id).all()).results;
}

const nothing = () => null;
const NOTHING_TOLD = { hindrance: nothing, judgeFlow: nothing, trainingFlow: nothing, training: nothing };

test("what the database refuses is kept, and written once when it takes it again", async () => {
  const platform = await openPlatform();
  await env.DB.exec("alter table rollouts rename to rollouts_away");
  const request = { environment: "gsm8k", dataset: questions(3), model: script(RIGHT) };
  const run = await platform.finish(request);
  expect(run).toMatchObject({ status: "completed", counts: { scored: 3 } });
  await alarmAfter(platform, run.id, HOUR);
  expect(await undrained(platform, run.id)).toBe(3);
  // The object knows how the run ended, whatever the database still says.
  expect((await platform.run(run.id)).status).toBe("completed");
  await env.DB.exec("alter table rollouts_away rename to rollouts");
  await alarmAfter(platform, run.id, 2 * HOUR);
  expect(await undrained(platform, run.id)).toBe(0);
  const rows = await rowsOf(run.id);
  expect(rows.map(({ id }) => id)).toEqual([0, 1, 2].map((group) => rolloutAt(run.id, group)));
  expect(rows).toMatchObject([1, 1, 1].map((reward) => ({ reward, outcome: "scored" })));
  await alarmAfter(platform, run.id, 3 * HOUR);
  expect(await rowsOf(run.id)).toEqual(rows);
});

test("the run's row says in the end what its object says", async () => {
  const platform = await openPlatform();
  const request = { environment: "gsm8k", dataset: questions(2), model: script(RIGHT) };
  const run = await platform.finish(request);
  await alarmAfter(platform, run.id, HOUR);
  const row = await env.DB.prepare("select * from runs where id = ?").bind(run.id).first();
  expect(row).toMatchObject({ status: "completed", error: null });
  expect(JSON.parse(String(row?.["counts"]))).toEqual(run.counts);
  expect(JSON.parse(String(row?.["report"]))).toEqual(run.report);
});

test("the run's row is not taken for current when the run changed while it was written", async () => {
  const platform = await openPlatform();
  const request = { environment: "gsm8k", dataset: questions(1), model: script(RIGHT) };
  const run = await platform.finish(request);
  await alarmAfter(platform, run.id, HOUR);
  const { scope } = platform;
  const said = await platform.inRun(run.id, async (_, { storage }) => {
    const store = new RunStore(storage, LEDGER_HOOKS);
    const spec = store.spec();
    if (spec === null) throw new Error("no such run");
    const views = new LiveViews(store, () => Date.now(), NOTHING_TOLD);
    const write = async (meanwhile: () => void) => {
      const written = new Subrequests();
      const fetch = written.fetch.bind(written);
      written.fetch = async (work) => {
        const result = await fetch(work);
        meanwhile();
        return result;
      };
      await drain(env, store, spec, () => views.of(spec), written);
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

test("a settled and drained run keeps one alarm: the one that frees its rollouts a day later", async () => {
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
