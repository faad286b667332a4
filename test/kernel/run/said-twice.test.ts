/** Messages that reach a run twice, late, or after a change have an effect once. Driven by hand, on real storage. */
import { expect, test } from "vitest";
import { cutSegment, fold, giveUp, requestCancel, score } from "../../../src/kernel/run/accounting.ts";
import { requestJudgements } from "../../../src/kernel/run/judging/scoring-group-state.ts";
import { byHand, type Hand } from "../run-by-hand.ts";
import { scoreOf } from "../run-rows.ts";

function firstRow({ store }: Hand) {
  const row = store.bySeq(1);
  if (row === null) throw new Error("nothing was dispatched");
  return row;
}

test("a report that arrives again while its scoring group waits for scores is counted once", async () => {
  const seen = await byHand({}, (run) => {
    run.dispatch();
    const row = firstRow(run);
    const scoringGroups = [run.answerOne(row), run.answerOne(row)];
    return { units: scoringGroups, head: run.store.head() };
  });
  expect(seen.units).toEqual([1, null]);
  expect(seen.head).toMatchObject({ running: 0, in_flight: 1, finished: 0, gate: { ended: 1, calls: 1 } });
});

test("scores that arrive again change nothing, whatever their reward", async () => {
  const seen = await byHand({ num_examples: 2, min_scored: 0 }, (run) => {
    const { store, spec } = run;
    run.dispatch();
    const row = firstRow(run);
    run.answerOne(row);
    for (const reward of [1, 0, null]) score(store, spec, [scoreOf(row, reward)], run.now);
    return { head: store.head(), reward: store.bySeq(1)?.reward };
  });
  expect(seen.reward).toBe(1);
  expect(seen.head).toMatchObject({ finished: 1, scored: 1, unscored: {}, in_flight: 1 });
});

test("a rollout that reported before it could be given up is scored", async () => {
  const seen = await byHand({}, (run) => {
    const { store, spec } = run;
    run.dispatch();
    const row = firstRow(run);
    run.answerOne(row);
    const given = { from: "running", outcome: "failed", reason: "platform", message: "it is silent" } as const;
    const scoringGroup = giveUp(store, spec, row, given, run.now);
    return { unit: scoringGroup, status: store.bySeq(1)?.status, head: store.head() };
  });
  expect(seen).toMatchObject({ unit: null, status: "scoring", head: { running: 0, in_flight: 1, failed: {} } });
});

test("a run that is stopped twice stops for the first reason", async () => {
  const head = await byHand({}, (run) => {
    run.dispatch();
    requestCancel(run.store, run.spec, "user", run.now);
    requestCancel(run.store, run.spec, "deadline", run.now + 1);
    return run.store.head();
  });
  expect(head.stop).toEqual({ kind: "cancel", reason: "user", at: 1000 });
});

test("a segment is cut once and keeps its first object", async () => {
  const seen = await byHand({ num_examples: 3 }, (run) => {
    const { store } = run;
    run.dispatch();
    run.answer();
    run.score();
    const cut = [cutSegment(store, run.now), cutSegment(store, run.now)];
    for (const key of ["first", "second"]) fold(store, 1, key);
    return { cut, key: store.segment(1)?.key, head: store.head() };
  });
  expect(seen).toMatchObject({ cut: [1, null], key: "first", head: { segmented: 3, unsegmented_bytes: 0 } });
});

test("a group waits for its judges until the last member has scores, and their cost is charged to the first", async () => {
  const judges = { default: { endpoint_id: "ep_judge", model: "m", sampling: {} } };
  const given = { whole_groups: true, rollouts_per_example: 2, judges };
  const judgement = {
    ...{ unit: 0, key: "k", rollout_id: null, judge: "default", pass: 0, seed: null, left_out: 0, cached: 0 },
    ...{ tries: 0, replies: 0, next_at: 0, verdict: `{"value":1}`, reply: null, calls: 1, prompt_tokens: 2 },
    ...{ completion_tokens: 3, cached_tokens: 0, unmetered: 0 },
  };
  const seen = await byHand(given, (run) => {
    const { store, spec, now } = run;
    run.dispatch();
    run.answer();
    requestJudgements(store, spec, [{ unit: 0, endpoint_id: "ep_judge", calls: 1 }], now);
    store.judging.saveJudgement(judgement);
    return run.rows("scoring").map((row) => {
      score(store, spec, [scoreOf(row, 1)], now);
      return [store.bySeq(row.seq)?.judge_calls, store.judging.scoringGroup(0)?.stage ?? null];
    });
  });
  expect(seen).toEqual([
    [1, "waiting"],
    [0, null],
  ]);
});
