/**
 * A retried group keeps its number, and so does its scoring group. Here messages about the earlier attempts arrive
 * late: they must not affect the attempts that count now.
 */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { RunObject } from "../../../src/index.ts";
import type { JudgedAsk } from "../../../src/kernel/messages/judge-outcome.ts";
import type { RolloutEntry } from "../../../src/kernel/messages/run-records.ts";
import { giveUp } from "../../../src/kernel/run/accounting.ts";
import {
  requestJudgements,
  takeResults,
  takeScoringGroup,
} from "../../../src/kernel/run/judging/scoring-group-state.ts";
import { RunQuarantine } from "../../../src/kernel/run/quarantine.ts";
import { scoringGroupsWaiting } from "../../../src/kernel/run/scoring-groups.ts";
import { inside } from "../platform.ts";
import { Hand } from "../run-by-hand.ts";

const GROUP = { rollouts_per_example: 2, whole_groups: true } as const;
const JUDGES = { default: { endpoint_id: "bench", model: "j", sampling: {} } };
const OWED = { unit: 0, endpoint_id: "bench", calls: 1 };

function withHand(given: object, use: (run: Hand) => void): Promise<void> {
  const stub = env.RUN.getByName(crypto.randomUUID());
  return inside(stub, RunObject, (_, { storage }) => use(new Hand(storage, { ...GROUP, ...given })));
}

/** Its members have reported, and end without scores; then they are retried. */
function givenUpAndRetried(run: Hand): readonly RolloutEntry[] {
  const before = run.rows("scoring");
  const ending = { from: "scoring", outcome: "unscored", reason: "judge", message: "?" } as const;
  for (const row of before) giveUp(run.store, run.spec, row, ending, run.now);
  run.now += 1000;
  run.retry();
  run.dispatch();
  return before;
}

function waiting(run: Hand): number[] {
  return scoringGroupsWaiting(run.store, run.spec, [0], 0).map(({ members }) => members.length);
}

test("a late message about a group's first scores finds nothing while members of its retry still run", async () => {
  await withHand({}, (run) => {
    run.dispatch();
    run.answer(1);
    expect(waiting(run)).toEqual([1]);
    run.score();
    run.retry();
    run.dispatch(1);
    run.answer();
    // One of them has reported, and the other is not dispatched yet.
    expect([run.rows("scoring").length, waiting(run)]).toEqual([1, []]);
    run.dispatch();
    expect(waiting(run)).toEqual([]);
    run.answer();
    expect(waiting(run)).toEqual([2]);
  });
});

test("a late request for judgements of a group is ignored until its retry is complete", async () => {
  await withHand({ judges: JUDGES }, (run) => {
    run.dispatch();
    run.answer();
    givenUpAndRetried(run);
    const [first] = run.rows("running");
    if (first === undefined) throw new Error("nothing runs");
    run.answerOne(first);
    requestJudgements(run.store, run.spec, [OWED], run.now);
    expect(run.store.judging.scoringGroup(0)).toBeNull();
    run.answer();
    requestJudgements(run.store, run.spec, [OWED], run.now);
    expect(run.store.judging.scoringGroup(0)).toMatchObject({ stage: "waiting" });
  });
});

test("a judgement of a superseded attempt is not used for its retry, and one of the group is charged once", async () => {
  await withHand({ judges: JUDGES }, (run) => {
    const { store, spec } = run;
    run.dispatch();
    run.answer();
    const take = () => {
      requestJudgements(store, spec, [OWED], run.now);
      store.judging.setScoringGroup(0, { stage: "sent" });
      const taken = takeScoringGroup(store, spec, { unit: 0, by: { id: "message", attempt: 1 } }, run.now);
      if (taken === null) throw new Error("not to be taken");
      return taken.claim;
    };
    const claim = take();
    const [old] = givenUpAndRetried(run);
    run.answer();
    const next = take();
    const usage = { prompt_tokens: 40, completion_tokens: 2, total_tokens: 42 };
    const outcome = { kind: "given", value: "good", reason: null, usage } as const;
    const said = (key: string, rollout_id: string | null): JudgedAsk => ({
      ...{ key, judge: "default", pass: 0, rollout_id, left_out: 0, seed: null, outcome },
    });
    const asks = [said("on one", old?.id ?? ""), said("on all", null)];
    expect(takeResults(store, spec, { unit: 0, claim }, asks, run.now)).toMatchObject({
      ...{ settled: [["on all", { value: "good" }]], go_on: false },
    });
    const [mine] = run.rows("scoring");
    takeResults(store, spec, { unit: 0, claim: next }, [said("on one", mine?.id ?? "")], run.now);
    run.score();
    const charged = run.rows("done").map(({ judge_prompt_tokens }) => judge_prompt_tokens);
    expect([charged, store.judging.judgements(0)]).toEqual([[0, 0, 80, 0], []]);
  });
});

test("a group that was given up for the deaths it caused is tried again when it is retried", async () => {
  await withHand({}, (run) => {
    run.dispatch();
    run.answer();
    const quarantine = new RunQuarantine(env, run.store);
    const admitToQuarantine = (boot: string) =>
      quarantine.admitToQuarantine(run.spec, "unit/0", { boot, died: true }, run.now);
    expect(["a", "b", "c"].map(admitToQuarantine)).toEqual([{ deaths: 0 }, { deaths: 1 }, null]);
    expect(run.rows("done").map(({ outcome }) => outcome)).toEqual(["unscored", "unscored"]);
    // An earlier consumer may still ask.
    expect(admitToQuarantine("c")).toBeNull();
    run.retry();
    run.dispatch();
    run.answer();
    expect(admitToQuarantine("d")).toEqual({ deaths: 0 });
  });
});
