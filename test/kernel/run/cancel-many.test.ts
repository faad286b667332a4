/** Cancelling many rollouts: they are notified in slices, one right after the other, without a wait in between. */
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { RolloutObject } from "../../../src/kernel/rollout/object.ts";
import { acceptedOnly, createLossy } from "../hand-made.ts";
import { isOf, openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});
afterEach(() => {
  vi.restoreAllMocks();
});

const ROLLOUTS = 2 * LIMITS.sliceObjects;

test("a cancelled run notifies a slice of its rollouts per alarm, without a wait in between", async () => {
  const template = await platform.finish({
    environment: "gsm8k",
    dataset: questions(1),
    model: script(RIGHT),
    rollouts_per_example: 1,
    max_concurrent: ROLLOUTS,
  });
  const row = await acceptedOnly(platform, template.id, { rollouts_per_example: ROLLOUTS });
  const { within } = await createLossy(platform, row);
  const now = Date.now();
  const told = await within(async (run) => {
    run.now = () => now;
    await run.cancel();
    const counts: number[] = [];
    for (let slice = 0; slice < ROLLOUTS / LIMITS.sliceObjects; slice += 1) {
      await run.alarm();
      counts.push(await toldSoFar(row.id));
    }
    return counts;
  });
  expect(told).toEqual([LIMITS.sliceObjects, ROLLOUTS]);
  await platform.inRun(row.id, (_, { storage }) => storage.deleteAlarm());
});

test("the rollouts of a slice are notified all at once: none waits for the others to react", async () => {
  const many = 60;
  const hangs = [{ fault: { kind: "drip", everyMs: 20 } }] as const;
  const request = { environment: "gsm8k", dataset: questions(many), model: script(hangs) };
  const run = await platform.start({ ...request, max_concurrent: many });
  await requestsOf(request.model, many);
  let heard = 0;
  const cancel = RolloutObject.prototype.cancel;
  // No object answers before all were called. Each polls by itself, since an object cannot resolve another's promise.
  vi.spyOn(RolloutObject.prototype, "cancel").mockImplementation(async function (this: RolloutObject, orders) {
    if (!isOf(run.id, this)) return await cancel.call(this, orders);
    heard += orders.length;
    while (heard < many) await scheduler.wait(1);
    return await cancel.call(this, orders);
  });
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  expect((await platform.ended(run.id)).counts.cancelled).toEqual({ user: many });
});

function toldSoFar(id: string): Promise<number> {
  return platform.inRun(id, (_, { storage }) =>
    Number(storage.sql.exec("select total(told) as n from rollouts").one()["n"]),
  );
}
