/** The report of a running run is summed as rollouts end; it must equal a sum over all rows. */

import { expect, test } from "vitest";
import type { RunReport } from "../../../src/contract/report.ts";
import { ACCOUNTING_HOOKS } from "../../../src/kernel/run/object.ts";
import { reportOfRows } from "../../../src/kernel/run/report-sums.ts";
import { RunStore } from "../../../src/kernel/run/store.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

function walked(platform: TestApi, id: string): Promise<unknown> {
  return platform.inRun(id, (_, { storage }) => {
    const store = new RunStore(storage, ACCOUNTING_HOOKS);
    const spec = store.spec();
    return spec === null ? null : reportOfRows(spec, store.reportRows());
  });
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
    const view = await platform.inRun(id, (run) => run.view()?.report);
    expect(summed(view)).toEqual(await walked(platform, id));
  }
  await platform.post(`/v1/runs/${id}/cancel`, {});
  const ended = await platform.ended(id);
  expect(summed(ended.report)).toEqual(await walked(platform, id));
  expect(ended.report.reward).toMatchObject({ n_rollouts: 22, n_tasks: 11, mean: 9 / 11 });
});
