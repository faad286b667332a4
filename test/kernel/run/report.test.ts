/** The report of a running run is summed as rollouts end; it must equal a sum over all rows. */

import { expect, test } from "vitest";
import type { RunReport } from "../../../src/contract/report.ts";
import type { RunSpec } from "../../../src/kernel/messages/wire.ts";
import { ACCOUNTING_HOOKS } from "../../../src/kernel/run/object.ts";
import { LiveViews } from "../../../src/kernel/run/report.ts";
import { ReportSums } from "../../../src/kernel/run/report-sums.ts";
import { RunStore } from "../../../src/kernel/run/store.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

function walked(platform: TestApi, id: string): Promise<unknown> {
  return platform.inRun(id, (_, { storage }) => {
    const store = new RunStore(storage, ACCOUNTING_HOOKS);
    const spec = store.spec();
    return spec === null ? null : sumOfRows(store, spec);
  });
}

function sumOfRows(store: RunStore, spec: RunSpec): RunReport {
  const sums = new ReportSums(spec);
  const all = { group: -1, slot: -1, attempt: -1 };
  for (const row of store.reportRows(all, Number.MAX_SAFE_INTEGER)) sums.add(row);
  return sums.report();
}

function viewsOf(store: RunStore): LiveViews {
  return new LiveViews(store, () => Date.now(), {
    ...{ hindrance: () => null, judgeStatusReason: () => null, trainingStatusReason: () => null },
    training: () => null,
  });
}

async function restart(platform: TestApi, id: string): Promise<void> {
  await expect(platform.inRun(id, (_, state) => state.abort("killed"))).rejects.toThrow("killed");
}

/** An ended run with many thousand rollouts: copies of its first one, each a task of its own with another reward. */
async function largeRun(platform: TestApi): Promise<string> {
  const { id } = await platform.finish({ environment: "gsm8k", dataset: questions(1), model: script(RIGHT) });
  await platform.inRun(id, (_, { storage }) => {
    storage.sql.exec(
      `with recursive n(i) as (select 1 union all select i + 1 from n where i < 7000)
      insert into rollouts (seq, group_index, slot, attempt, id, status, outcome, ask_at, turns, calls, scores, reward, finish_seq)
        select i + 1, 7001 - i, 0, 0, 'copy ' || i, 'done', 'scored', 0, 1, 1, r.scores, i / 7919.0, i + 1
        from n, rollouts r where r.seq = 1`,
    );
    const store = new RunStore(storage, ACCOUNTING_HOOKS);
    store.saveHead({ ...store.head(), finished: 7001, scored: 7001, dispatched: 7001 });
    storage.kv.delete("report");
  });
  return id;
}

/** Without the values that are counted at the ends and are not in rows. */
function summed({ latency: _, ...report }: Partial<RunReport> = {}): Partial<RunReport> {
  return report;
}

test("a view of a running run agrees with all its rows, before and after more have ended, and so does the last view", async () => {
  const platform = await openPlatform();
  const { id } = await platform.start({
    environment: "gsm8k",
    dataset: questions(12, ["wrong", "stuck", "wrong"]),
    model: script(RIGHT, { wrong: ["\\boxed{5}"], stuck: [{ fault: { kind: "hang" } }] }),
    ...{ rollouts_per_example: 2, max_concurrent: 4, min_scored: 0 },
  });
  for (const scored of [4, 22]) {
    for (let after = 0; (await platform.run(id)).counts.scored < scored; ) {
      const read = await platform.inRun(id, (run) => run.events(after, 1000));
      after = read?.events.at(-1)?.id ?? after;
    }
    const view = await platform.inRun(id, async (run) => (await run.view())?.report);
    expect(summed(view)).toEqual(await walked(platform, id));
  }
  await platform.post(`/v1/runs/${id}/cancel`, {});
  const ended = await platform.ended(id);
  expect(summed(ended.report)).toEqual(await walked(platform, id));
  expect(ended.report.reward).toMatchObject({ n_rollouts: 22, n_tasks: 11, mean: 9 / 11 });
});

test("the report of a large ended run is summed in slices between which others are answered, and is then stored", async () => {
  const platform = await openPlatform();
  const id = await largeRun(platform);
  const expected = await walked(platform, id);
  expect(expected).toMatchObject({ reward: { n_rollouts: 7001 } });
  await restart(platform, id);
  await platform.inRun(id, async (run, { storage }) => {
    const order: string[] = [];
    const both = [run.view(), run.view()].map(async (reading) => {
      const view = await reading;
      order.push("view");
      return view;
    });
    await scheduler.wait(0).then(() => order.push("another request"));
    for (const view of await Promise.all(both)) expect(summed(view?.report)).toEqual(expected);
    expect(order).toEqual(["another request", "view", "view"]);
    storage.sql.exec("delete from rollouts");
  });
  // The next instance reads no row.
  await restart(platform, id);
  await platform.inRun(id, async (run) => expect(summed((await run.view())?.report)).toEqual(expected));
});

test("a run that continues while its report is summed stores none, and its next report has the new rows", async () => {
  const platform = await openPlatform();
  const id = await largeRun(platform);
  await platform.inRun(id, async (_, { storage }) => {
    const store = new RunStore(storage, ACCOUNTING_HOOKS);
    const spec = store.spec();
    if (spec === null) throw new Error("the run has no spec");
    const views = viewsOf(store);
    const preparing = views.storeReport(spec);
    storage.sql.exec("update rollouts set reward = 0 where seq = 1");
    store.saveHead({ ...store.head(), settled_at: 1 });
    await preparing;
    expect(storage.kv.get("report")).toBeUndefined();
    await views.storeReport(spec);
    expect(storage.kv.get("report")).toMatchObject({ report: sumOfRows(store, spec) });
    expect(summed(views.of(spec).report)).toEqual(sumOfRows(store, spec));
  });
});
