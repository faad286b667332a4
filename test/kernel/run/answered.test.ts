/** How a rollout's own report ends it, in the run's accounting. */
import { expect, test } from "vitest";
import type { RolloutReport } from "../../../src/kernel/messages/wire.ts";
import { answer } from "../../../src/kernel/run/accounting.ts";
import { countsOf } from "../../../src/kernel/run/report.ts";
import { byHand } from "../run-by-hand.ts";
import { reportOf, scoreOf } from "../run-rows.ts";

/** The end of a rollout whose report has scores. */
function endedWith(how: Pick<RolloutReport, "failure" | "cancelled">, reward: number | null) {
  return byHand({}, (hand) => {
    hand.dispatch();
    const [row] = hand.rows("running");
    if (row === undefined) throw new Error("nothing runs");
    const { record } = scoreOf(row, reward);
    answer(hand.store, hand.spec, { ...reportOf(row, how), record }, hand.now);
    const ended = hand.store.bySeq(row.seq);
    return {
      ...{ status: ended?.status, outcome: ended?.outcome, reason: ended?.reason, reward: ended?.reward },
      counts: countsOf(hand.spec, hand.store.head()),
    };
  });
}

test("a score in the report of a failed rollout is ignored: its reward is null", async () => {
  const failed = await endedWith({ failure: "provider", cancelled: null }, 1);
  expect(failed).toMatchObject({ status: "done", outcome: "failed", reason: "provider", reward: null });
  expect(failed.counts).toMatchObject({ scored: 0, failed: { provider: 1 } });
});

test("a score in the report of a cancelled rollout is ignored: its reward is null", async () => {
  const cancelled = await endedWith({ failure: null, cancelled: "user" }, 1);
  expect(cancelled).toMatchObject({ status: "done", outcome: "cancelled", reason: "user", reward: null });
  expect(cancelled.counts).toMatchObject({ scored: 0, cancelled: { user: 1 } });
});

test("a rollout whose report has scores is scored at once, or unscored if its scorer gave none", async () => {
  const well = { failure: null, cancelled: null };
  expect(await endedWith(well, 0.5)).toMatchObject({ status: "done", outcome: "scored", reason: null, reward: 0.5 });
  expect(await endedWith(well, null)).toMatchObject({ outcome: "unscored", reason: "scorer", reward: null });
});
