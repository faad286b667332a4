/** Rollouts that filters leave out of training, and runs that have nothing to train on: driven by hand. */
import { expect, test } from "vitest";
import { score } from "../../../../src/kernel/run/accounting.ts";
import type { Credit } from "../../../../src/kernel/run/training-state.ts";
import { scoreOf } from "../../run-rows.ts";
import { RIGHT, type TrainingByHand, trainingByHand } from "../../training-rows.ts";

/** Scores the group; the filter leaves out the samples of these slots. */
function scoreFiltered(run: TrainingByHand, index: number, slots: readonly number[]): void {
  for (const row of run.rows("running")) if (row.group_index === index) run.answer(row);
  const rows = run.group(index);
  const kept = rows.filter(({ slot }) => !slots.includes(slot));
  const found = { repetition: rows.length - kept.length };
  const whole = run.samplesOf(index, rows);
  const { samples, object } = run.samplesOf(index, kept);
  const made = { ...whole, samples, object: kept.length === 0 ? null : object, flagged: found, filtered: found };
  const members = rows.map((row) => scoreOf(row, row.slot % 2));
  score(run.store, run.spec, members, run.now, [made]);
}

test("rollouts that a filter leaves out are replaced by those of further groups, so that a batch keeps its size", async () => {
  await trainingByHand({ batch_size: { rollouts: 4 }, lead: 0, max_steps: 1 }, (run) => {
    run.dispatch();
    expect(run.training.groups_opened).toBe(2);
    for (const group of [0, 1]) scoreFiltered(run, group, [0]);
    expect([run.cut(), run.training.buffered.rollouts]).toEqual([0, 2]);
    run.dispatch();
    expect(run.training.groups_opened).toBe(3);
    scoreFiltered(run, 2, []);
    expect(run.cut()).toBe(1);
    expect(run.store.training.batch(1, 0)).toMatchObject({ groups: 3, rollouts: 4, samples: 4 });
    expect([run.training.flagged, run.training.filtered]).toEqual([{ repetition: 2 }, { repetition: 2 }]);
    const [step] = run.store.training.steps(0, 1);
    expect(JSON.parse(step?.metrics ?? "{}")).toMatchObject({
      ...{ "rollout/flagged/repetition": 2, "rollout/filtered/repetition": 2 },
      ...{ "train/agg/all/is_trainable": 4 / 6, "train/agg/effective/is_trainable": 1 },
    });
    // The credit of a rollout that is left out: it counted in its group's mean.
    const credits: Record<string, Credit> = JSON.parse(run.store.training.group(0)?.credits ?? "{}");
    expect(Object.values(credits).map(({ advantage }) => advantage)).toEqual([-0.5, 0.5]);
  });
});

test("a run whose every rollout a filter leaves out ends after ten batches' worth of them, with the reason", async () => {
  await trainingByHand({ batch_size: { rollouts: 4 } }, (run) => {
    let group = 0;
    while (run.store.head().stop === null) {
      expect(run.dispatch(2)).toBe(2);
      scoreFiltered(run, group, [0, 1]);
      group += 1;
    }
    expect(group).toBe(20);
    expect(run.store.head().stop).toMatchObject({ kind: "fail", code: "nothing_to_train" });
    const { message } = run.store.head().error ?? {};
    expect(message).toBe(
      "40 rollouts in a row gave nothing to train on: 20 groups filtered (the filters of single rollouts left none of its rollouts: see training.samples.filtered)",
    );
    expect(run.training.dropped).toEqual({ filtered: 20 });
  });
});

test.each([
  ["rollouts", { rollouts: 4 }],
  ["tokens", { tokens: 40 }],
])(
  "groups with too few scores, for batches in %s, end a run after ten batches' worth of them",
  async (_, batch_size) => {
    await trainingByHand({ batch_size }, (run) => {
      for (let group = 0; run.store.head().stop === null; group += 1) {
        expect([group < 21, run.dispatch(2)]).toEqual([true, 2]);
        for (const row of run.rows("running")) {
          run.answer(row, row.slot === 0 ? { failure: "provider", cancelled: null } : RIGHT);
        }
        run.score(group, [null, 1]);
      }
      const { code = "", message = "" } = run.store.head().error ?? {};
      expect([code, message]).toEqual(["nothing_to_train", expect.stringMatching(/^\d+ rollouts in a row .*too_few/)]);
    });
  },
);
