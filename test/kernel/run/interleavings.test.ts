/** Events between two steps of a run: a retry while the database is written, an early end in a group, restarts. */

import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { Judgement } from "../../../src/contract/judgement.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { Subrequests } from "../../../src/kernel/kit/subrequests.ts";
import { writeRow } from "../../../src/kernel/run/housekeeping.ts";
import {
  endCancelled,
  reconcileJudging,
  requestJudgements,
  takeScoringGroup,
} from "../../../src/kernel/run/judging/scoring-group-state.ts";
import type { JudgementEntry } from "../../../src/kernel/run/judging-store.ts";
import { reconcileScoring } from "../../../src/kernel/run/reconcile.ts";
import { LiveViews } from "../../../src/kernel/run/report.ts";
import { waitingRows } from "../../../src/kernel/run/scoring-groups.ts";
import { byHand, type Hand } from "../run-by-hand.ts";

const MINUTE_MS = 60_000;
const GROUP = { whole_groups: true, rollouts_per_example: 4 } as const;

const nothing = () => null;
const NO_PARTS = {
  hindrance: nothing,
  judgeStatusReason: nothing,
  trainingStatusReason: nothing,
  training: nothing,
};

test("a slot that was scored twice counts once for min_scored", async () => {
  const given = { ...GROUP, min_scored: 1 };
  const head = await byHand(given, (run) => {
    run.dispatch();
    run.answer(1);
    run.score();
    run.retry();
    run.dispatch();
    run.answer(1);
    run.score();
    return run.store.head();
  });
  expect(head).toMatchObject({ scored: 6, failed: { provider: 2 }, status: "failed" });
  expect(head.error?.message).toContain("3 of 4");
});

test("if a retry arrives while the run's row is being written, the row is written once more", async () => {
  const seen = await byHand({ num_examples: 2 }, async (run) => {
    const { store, spec } = run;
    const views = new LiveViews(store, () => run.now, NO_PARTS);
    const write = () => writeRow(env, store, spec, () => views.of(spec), new Subrequests());
    const current = () => store.head().row_current;
    run.dispatch();
    run.answer(2);
    const first = write();
    run.retry();
    await first;
    const behind = !current();
    run.dispatch();
    run.answer();
    run.score();
    await write();
    return { behind, current: current(), finished: store.head().finished };
  });
  expect(seen).toEqual({ behind: true, current: true, finished: 4 });
});

test("a group that was scored in part by an early end is scored whole when the run continues", async () => {
  const members = await byHand(GROUP, (run) => {
    run.dispatch(2);
    run.answer();
    run.stop();
    run.score();
    run.retry();
    run.dispatch();
    const scoringGroups = run.answer();
    expect(scoringGroups.at(-1)).toBe(0);
    return waitingRows(run.store, run.spec, 0).length;
  });
  expect(members).toBe(4);
});

test("a group whose retry was only partly dispatched before an early end is scored whole after the next retry", async () => {
  const members = await byHand(GROUP, (run) => {
    run.dispatch();
    run.answer(1);
    run.score();
    run.retry();
    run.dispatch(2);
    run.answer();
    run.stop();
    run.score();
    run.retry();
    run.dispatch();
    run.answer();
    return waitingRows(run.store, run.spec, 0).length;
  });
  expect(members).toBe(4);
});

test("scoring interrupted by any number of restarts is sent again, and given up only for its own silence", async () => {
  const tried = await byHand({}, (run) => {
    const { store, spec } = run;
    const reconcile = () => reconcileScoring(store, spec, store.silent(run.now, 10), run.now);
    run.dispatch();
    run.answer();
    const restarts = Array.from({ length: 9 }, () => {
      run.now += 1000;
      store.askAll(run.now);
      return reconcile();
    });
    const silences = Array.from({ length: 6 }, () => {
      run.now += 10 * MINUTE_MS;
      store.askAll(run.now);
      return reconcile();
    });
    return { restarts, silences, unscored: store.head().unscored };
  });
  expect(tried.restarts).toEqual(Array.from({ length: 9 }, () => [1]));
  expect(tried.silences).toEqual([[1], [1], [1], [1], [1], []]);
  expect(tried.unscored).toEqual({ scorer: 1 });
});

test("scoring that is silent for fifteen minutes is sent five times, each after twice the wait, and not given up", async () => {
  const { sent, unscored } = await byHand({}, (run) => {
    const { store, spec } = run;
    run.dispatch();
    run.answer();
    const end = run.now + 15 * MINUTE_MS;
    const answered = run.now;
    const sent: number[] = [];
    for (; run.now <= end; run.now += MINUTE_MS / 4) {
      const groups = reconcileScoring(store, spec, store.silent(run.now, 10), run.now);
      if (groups.length > 0) sent.push((run.now - answered) / MINUTE_MS);
    }
    return { sent, unscored: store.head().unscored };
  });
  expect(sent).toEqual([0.5, 1, 2, 4, 8]);
  expect(unscored).toEqual({});
});

const BY_HAND = { unit: 0, by: { id: "by hand", attempt: 1 } };
const JUDGED = {
  ...{ whole_groups: true, rollouts_per_example: 2 },
  judges: { default: { endpoint_id: "ep_judge", model: "m", sampling: {} } },
} as const;

/** Group 0 has reported, waits for a judgement, and is in a queue. */
function send({ store, spec, now }: Hand): void {
  requestJudgements(store, spec, [{ unit: 0, endpoint_id: "ep_judge", calls: 1 }], now);
  store.judging.setScoringGroup(0, { stage: "sent", lanes: 1, ask_at: now + 60_000 });
}

test("a claim of a group from before its retry is not valid for the group after it", async () => {
  const [before, after] = await byHand(JUDGED, (run) => {
    const { store, spec } = run;
    const claim = () => {
      run.dispatch();
      run.answer();
      send(run);
      return takeScoringGroup(store, spec, BY_HAND, run.now)?.claim;
    };
    const first = claim();
    run.stop();
    run.now += 3_600_000;
    reconcileJudging(store, spec, run.now, 10);
    endCancelled(store, spec, run.now, 10);
    run.retry();
    return [first, claim()];
  });
  expect(before).toBeDefined();
  expect(after).toBeGreaterThan(before ?? 0);
});

test("judging interrupted by restarts does not count as lost, and after failures it waits longer each time", async () => {
  const seen = await byHand(JUDGED, (run) => {
    const { store, spec } = run;
    run.dispatch();
    run.answer();
    send(run);
    for (let restarts = 0; restarts < 9; restarts += 1) {
      takeScoringGroup(store, spec, BY_HAND, run.now);
      store.askAll(run.now);
      run.now += 6000;
      reconcileJudging(store, spec, run.now, 10);
      store.judging.setScoringGroup(0, { stage: "sent", ask_at: run.now + 60_000 });
    }
    const losses = store.judging.scoringGroup(0)?.losses;
    const waits = Array.from({ length: 5 }, () => {
      const claim = takeScoringGroup(store, spec, BY_HAND, run.now)?.claim;
      const broken = { unit: 0, endpoint_id: "ep_judge", calls: 1, failed: true };
      requestJudgements(store, spec, [{ ...broken, ...(claim && { claim }) }], run.now);
      const wait = (store.judging.scoringGroup(0)?.ask_at ?? 0) - run.now;
      store.judging.setScoringGroup(0, { stage: "sent" });
      return wait / 1000;
    });
    return { losses, waits };
  });
  expect(seen).toEqual({ losses: 0, waits: [5, 10, 20, 40, 80] });
});

test("judgements of a rollout fit its row, however long they are, and all of them are charged", async () => {
  const row = await byHand(JUDGED, (run) => {
    const { store } = run;
    run.dispatch();
    run.answer();
    send(run);
    for (let key = 0; key < 2000; key += 1) store.judging.saveJudgement(verdictOf(String(key)));
    run.score();
    return store.bySeq(1);
  });
  const kept: unknown[] = JSON.parse(row?.judgements ?? "");
  expect(new TextEncoder().encode(row?.judgements ?? "").length).toBeLessThan(LIMITS.rowBytes);
  expect(kept.length).toBeGreaterThan(100);
  expect(row).toMatchObject({ status: "done", judge_calls: 2000, judge_prompt_tokens: 4000 });
});

test("replies of judges fit beside the judgements: no judgement is left out because of them", async () => {
  const row = await byHand(JUDGED, (run) => {
    const { store } = run;
    run.dispatch();
    run.answer();
    send(run);
    const reply = "因".repeat(LIMITS.judgeReplyCharacters);
    for (let key = 0; key < 100; key += 1) store.judging.saveJudgement({ ...verdictOf(String(key)), reply });
    run.score();
    return store.bySeq(1);
  });
  const kept: Judgement[] = JSON.parse(row?.judgements ?? "");
  const replied = kept.map(({ reply }) => reply !== undefined);
  expect(kept).toHaveLength(100);
  expect([replied[0], replied.at(-1)]).toEqual([true, false]);
  expect(new TextEncoder().encode(row?.judgements ?? "").length).toBeLessThan(LIMITS.rowBytes);
});

function verdictOf(key: string): JudgementEntry {
  const judgement = JSON.stringify({ value: "good", reason: "因".repeat(2000) });
  return {
    ...{ unit: 0, key, rollout_id: null, judge: "default", pass: 0, seed: null, left_out: 0 },
    ...{ cached: 0, tries: 0, replies: 0, next_at: 0, verdict: judgement, reply: "a reply" },
    ...{ calls: 1, prompt_tokens: 2, completion_tokens: 3, cached_tokens: 0, unmetered: 0 },
  };
}
