/** What a run with a cap reserves for calls whose cost is unknown. Driven by hand, on real storage. */
import { expect, test } from "vitest";
import type { RolloutEntry } from "../../../src/kernel/messages/run-records.ts";
import { answer, giveUp } from "../../../src/kernel/run/accounting.ts";
import { takeAsks } from "../../../src/kernel/run/cap.ts";
import {
  endClaim,
  reconcileJudging,
  requestJudgements,
  takeScoringGroup,
} from "../../../src/kernel/run/judging/scoring-group-state.ts";
import { byHand, type Hand } from "../run-by-hand.ts";
import { reportOf } from "../run-rows.ts";

const PRICED = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 1_000_000 };
const MONEY = { payer: "key_a", prices: null, policy: PRICED, max_cost_micros: 10_000 };
const JUDGES = { default: { endpoint_id: "ep_1", model: "j", sampling: {}, prices: PRICED } };
const RUN = { money: MONEY, num_examples: 1, rollouts_per_example: 1, min_scored: 0 };
const GONE = { from: "running", outcome: "failed", reason: "platform", message: "gone" } as const;
const WELL = { failure: null, cancelled: null } as const;

/** A rollout with a reservation of 4,000 micro-dollars that could not be reached any more. */
function givenUp(run: Hand): RolloutEntry {
  run.dispatch(1);
  takeAsks(run.store, run.spec, [{ group: 0, slot: 0, attempt: 0, asks: 1, spent: 0, need: 1000, wish: 4000 }]);
  const [row] = run.rows("running");
  if (row === undefined) throw new Error("nothing runs");
  giveUp(run.store, run.spec, row, GONE, run.now);
  return row;
}

test("a rollout that reports after it was given up counts what it spent instead of its reservation, once, and keeps its end", async () => {
  await byHand(RUN, (run) => {
    const row = givenUp(run);
    expect(run.store.head().cap).toMatchObject({ spent: 4000, out: 0, lost: { calls: 1, micros: 4000 } });
    const ended = run.store.bySeq(row.seq);
    const spent = { micros: 900, lost: { calls: 2, micros: 300 } };
    for (let times = 0; times < 2; times += 1) {
      answer(run.store, run.spec, { ...reportOf(row, WELL), spent }, run.now);
      expect(run.store.head().cap).toMatchObject({ spent: 900, out: 0, lost: { calls: 2, micros: 300 } });
    }
    expect(run.store.bySeq(row.seq)).toEqual(ended);
  });
});

test("a judge claim that reports after it was given up counts that instead of its reservation, once", async () => {
  await byHand({ ...RUN, judges: JUDGES }, (run) => {
    const needs = { unit: 1, endpoint_id: "ep_1", calls: 1, bound_micros: 3000 };
    run.dispatch(1);
    run.answer();
    requestJudgements(run.store, run.spec, [needs], run.now);
    run.store.judging.setScoringGroup(1, { stage: "sent", lanes: 1 });
    const taken = takeScoringGroup(run.store, run.spec, { unit: 1, by: { id: "m1", attempt: 1 } }, run.now);
    reconcileJudging(run.store, run.spec, run.now + 1_000_000_000, 10);
    expect(run.store.head().cap).toMatchObject({ spent: 3000, out: 0, lost: { calls: 1, micros: 3000 } });
    const late = { unit: 1, claim: taken?.claim ?? 0, spent: { micros: 120, lost: { calls: 0, micros: 0 } } };
    endClaim(run.store, late);
    endClaim(run.store, late);
    requestJudgements(run.store, run.spec, [{ ...needs, ...late }], run.now);
    expect(run.store.head().cap).toMatchObject({ spent: 120, out: 0, lost: { calls: 0, micros: 0 } });
  });
});
