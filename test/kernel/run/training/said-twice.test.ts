/** Messages that arrive again or out of order while groups are completed: each has an effect once. Driven by hand. */
import { expect, test } from "vitest";
import { score } from "../../../../src/kernel/run/accounting.ts";
import { scoreOf } from "../../run-rows.ts";
import { fill, trainingByHand } from "../../training-rows.ts";

test("a group is handled when its last member has ended, and once, however often its scores arrive", async () => {
  await trainingByHand({ max_steps: 9, min_group_size: 1 }, (run) => {
    run.dispatch(2);
    const [first, second] = run.rows("running");
    if (first === undefined || second === undefined) throw new Error("a group was opened");
    run.answer(first, { failure: "provider", cancelled: null });
    expect(run.training).toMatchObject({ positions: 0, groups_open: 1 });
    run.answer(second);
    const members = [scoreOf(second, 1)];
    const samples = [run.samplesOf(0, [second])];
    score(run.store, run.spec, members, run.now, samples);
    const taken = run.training;
    expect(taken).toMatchObject({ positions: 1, groups_open: 0 });
    score(run.store, run.spec, members, run.now, samples);
    expect(run.training).toEqual(taken);
  });
});

test("a reset keeps buffered groups that were sampled by the very weights it goes back to", async () => {
  await trainingByHand({ max_off_policy_steps: 3, lead: 1, max_steps: 9 }, (run) => {
    fill(run, 4);
    run.cut();
    run.train();
    fill(run, 1);
    expect(run.training.buffered.groups).toBe(1);
    run.tell({ generation: 1, reset_to: 1, published: 1, acked_step: 1 });
    expect(run.training).toMatchObject({ buffered: { groups: 3 }, dropped: {}, batches: { voided: 1 } });
  });
});
