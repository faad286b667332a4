/** Which reports of its trainer's object a training run applies, and which it does not. */
import { expect, test } from "vitest";
import { fill, trainingByHand } from "../../training-rows.ts";

test("a trainer's measurements are stored, even if its batch already counted as trained because of its weights", async () => {
  await trainingByHand({}, (run) => {
    fill(run, 2);
    run.cut();
    const ack = { step: 1, at: 5000, produced_version: 1 };
    run.tell({ acked_step: 1, published: 1, acks: [{ ...ack, metrics: {} }] });
    run.tell({ acks: [{ ...ack, metrics: { loss: 2 } }] });
    run.tell({ acks: [{ ...ack, metrics: { loss: 3 } }] });
    const [first] = run.store.training.steps(0, 1);
    expect(JSON.parse(first?.metrics ?? "{}")).toMatchObject({ "trainer/loss": 2 });
  });
});

test("metrics that were not finite numbers are null in the series, counted there, and named by the event", async () => {
  await trainingByHand({}, (run) => {
    fill(run, 2);
    run.cut();
    const ack = { step: 1, at: 5000, produced_version: 1, metrics: { loss: null, entropy: 1 } };
    run.tell({ acked_step: 1, published: 1, acks: [{ ...ack, not_finite: ["loss"] }] });
    const [first] = run.store.training.steps(0, 1);
    expect(JSON.parse(first?.metrics ?? "{}")).toMatchObject({
      ...{ "trainer/loss": null, "trainer/entropy": 1, "ack/not_finite": 1 },
    });
    const acked = run.store.events(0, 100).find(({ event }) => event === "batch.acked");
    expect(JSON.stringify(acked)).toContain("not_finite");
  });
});

test("an earlier snapshot of the trainer's object is not applied after a later one, nor a second time", async () => {
  await trainingByHand({ max_steps: 9 }, (run) => {
    fill(run, 4);
    run.cut();
    run.train();
    const earlier = { ...run.trainer, seq: run.trainer.seq - 1 };
    run.train();
    const told = () => {
      const batches = [1, 2].map((step) => run.store.training.batch(step, 0)?.state);
      return [batches, run.store.head(), run.store.events(0, 100)];
    };
    const known = told();
    expect(known[0]).toEqual(["acked", "acked"]);
    for (const trainer of [earlier, { ...run.trainer, seq: run.trainer.seq - 1 }]) {
      run.trainer = trainer;
      run.tell({ time: { waiting_for_batch: 0.5, not_training: null, waiting_by: "platform" } });
      expect(told()).toEqual(known);
    }
  });
});
