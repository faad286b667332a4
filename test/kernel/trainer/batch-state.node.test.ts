/** The decisions of a trainer's object for leases: pure, so every case is a state and a call. */
import { expect, test } from "vitest";
import { sharesOf } from "../../../src/kernel/messages/trainer-time.ts";
import { revive } from "../../../src/kernel/trainer/batch-state.ts";
import { PUSH, TrainerByHand, terms } from "../trainer-by-hand.ts";

test("a trainer that died after its lease gets the batch again once the lease has expired, with one attempt more", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1);
  trainer.register();
  trainer.leased();
  trainer.now += 60_000;
  expect(trainer.lease()).toMatchObject({ lease: { attempt: 2 }, batch: { step: 1 } });
});

test("a trainer that died before its checkpoint registers with the previous version and gets the same batch", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1, 2);
  trainer.register();
  trainer.trained(1);
  trainer.leased();
  expect(trainer.register({ version: 1, last: 1 })).toMatchObject({ epoch: 2, next_step: 2 });
  expect(trainer.lease()).toMatchObject({ batch: { batch_id: "bat_0_2" } });
});

test("a batch in the checkpoint of a trainer that died before its ack counts as acknowledged, and is not trained again", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1, 2);
  trainer.register();
  trainer.leased();
  expect(trainer.register({ version: 1, last: 1 })).toMatchObject({ epoch: 2, next_step: 2 });
  expect(trainer.lease()).toMatchObject({ batch: { step: 2 } });
});

test("a repeated ack gets the first answer, even if the lease is gone and weights are published", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1, 2);
  trainer.register();
  const serial = trainer.leased();
  const reply = { batch_id: "bat_0_1", step: 1, next_step: 2, published: 0 };
  expect(trainer.ack(serial, 1)).toEqual(reply);
  trainer.report("published", 1);
  trainer.leased();
  expect(trainer.ack(serial, 1)).toEqual(reply);
});

test("every call of a trainer after another has registered is fenced off, and changes nothing", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1);
  trainer.register();
  const serial = trainer.leased();
  trainer.register({ id: "t1" });
  const before = trainer.state;
  expect(trainer.ack(serial, 1, { epoch: 1 })).toBe("epoch_fenced");
  expect(trainer.heartbeat(serial, 1)).toBe("epoch_fenced");
  expect(trainer.lease(1, 1)).toBe("epoch_fenced");
  expect(trainer.state).toBe(before);
});

test("a trainer with weights older than the published ones must set reset_to; then everything since is void", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1, 2, 3);
  trainer.register();
  trainer.trained(1, 2);
  trainer.report("published", 2);
  expect(trainer.register({ version: 1, last: 1 })).toBe("conflict");
  const current = { version: 1, reset_to: 1 };
  expect(trainer.register({ version: 1 })).toBe("needs_reset");
  expect(trainer.register(current)).toMatchObject({ next_step: 2, published: 1 });
  expect(trainer.state).toMatchObject({ generation: 1, reset_to: 1, batches: [] });
  expect(trainer.lease()).toMatchObject({ waiting: "waiting_for_rollouts" });
  trainer.ready(2);
  expect(trainer.lease()).toMatchObject({ batch: { batch_id: "bat_1_2" } });
});

test("a reset that is requested twice, because its answer was lost, is carried out once", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1, 2);
  trainer.register();
  trainer.trained(1, 2);
  trainer.report("published", 2);
  trainer.register({ reset_to: 1 });
  trainer.register({ reset_to: 1 });
  expect(trainer.state).toMatchObject({ generation: 1, published: 1, epoch: 3 });
});

test("acknowledged batches without published weights are handed out again to a trainer that lacks them", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1, 2, 3);
  trainer.register();
  trainer.trained(1, 2);
  trainer.report("published", 1);
  expect(trainer.register({ version: 1 })).toMatchObject({ next_step: 2 });
  expect(trainer.lease()).toMatchObject({ batch: { batch_id: "bat_0_2" }, lease: { attempt: 1 } });
});

test("a trainer cannot have weights without an acknowledged batch", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1, 2);
  trainer.register();
  expect(trainer.register({ version: 1 })).toBe("version_ahead");
  expect(trainer.register({ version: 2, last: 2 })).toBe("conflict");
});

test("a repeated lease request gets the same lease", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1, 2);
  trainer.register();
  expect(trainer.leased()).toBe(trainer.leased());
  expect(trainer.lease(2)).toBe("step_mismatch");
});

test("a batch is added once: a repeated, acknowledged or void one adds nothing", () => {
  const trainer = new TrainerByHand();
  const steps = () => trainer.state.batches.map(({ step, state }) => [step, state]);
  trainer.ready(1, 2);
  trainer.ready(2, 1);
  expect(steps()).toEqual([
    [1, "ready"],
    [2, "ready"],
  ]);
  trainer.register();
  trainer.trained(1, 2);
  trainer.report("published", 2);
  trainer.ready(1, 2);
  expect(steps()).toEqual([[2, "acked"]]);
  trainer.register({ reset_to: 1 });
  trainer.readyIn(0, 2, 3);
  expect(steps()).toEqual([]);
});

test("an ack with the digest of other bytes is refused", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1);
  trainer.register();
  const serial = trainer.leased();
  expect(trainer.ack(serial, 1, { sha256: "0".repeat(64) })).toBe("conflict");
  expect(trainer.state).toMatchObject({ acked_step: 0, lease: { serial } });
});

test("a checkpoint with a batch that is acknowledged already leaves that acknowledgement unchanged", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1);
  trainer.register();
  trainer.ack(trainer.leased(), 1, { metrics: { loss: 1 } });
  const acked = trainer.state.batches[0];
  trainer.now += 1000;
  expect(trainer.register({ version: 1, last: 1 })).toMatchObject({ epoch: 2, next_step: 2 });
  expect(trainer.state.batches).toEqual([acked]);
});

test("a batch whose leases all end without an ack is dead; revived, it has all its attempts again", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1);
  trainer.register();
  expect(trainer.nack(trainer.leased())).toEqual({ state: "ready" });
  trainer.leased();
  trainer.now += 60_000;
  expect(trainer.nack(trainer.leased())).toEqual({ state: "dead" });
  expect(trainer.lease()).toMatchObject({ waiting: "paused" });
  trainer.state = revive(trainer.state, 1, trainer.now);
  expect(trainer.lease()).toMatchObject({ lease: { attempt: 1 } });
});

test("a nack that is not retryable makes a batch dead at once, and one for a shutdown costs it nothing", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1);
  trainer.register();
  for (let at = 0; at < 5; at += 1) trainer.nack(trainer.leased(), true, "shutdown");
  const serial = trainer.leased();
  expect(trainer.state.lease?.attempt).toBe(1);
  expect(trainer.nack(serial, false, "invalid")).toEqual({ state: "dead" });
  expect(trainer.nack(serial, false, "invalid")).toEqual({ state: "dead" });
});

test("an ack after its lease has ended counts, unless the batch was handed out again", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1, 2);
  trainer.register();
  const first = trainer.leased();
  trainer.now += 60_000;
  expect(trainer.heartbeat(first)).toBe("lease_lost");
  expect(trainer.ack(first, 1)).toMatchObject({ next_step: 2 });
  const second = trainer.leased();
  trainer.now += 60_000;
  trainer.leased();
  expect(trainer.ack(second, 2)).toBe("lease_lost");
});

test("a heartbeat extends a lease by its own duration", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1);
  trainer.register();
  const serial = trainer.leased();
  for (let at = 0; at < 5; at += 1) {
    trainer.now += 59_000;
    expect(trainer.heartbeat(serial)).toEqual({ expires_at: trainer.now + 60_000 });
  }
});

test("weights are published and applied after the ack of their batch, once and in order; pending ones may be the next", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1, 2);
  trainer.register();
  expect(trainer.report("published", 1)).toBe("version_ahead");
  const serial = trainer.leased();
  for (const state of ["published", "applied"] as const) {
    expect(trainer.report(state, 1)).toBe("version_ahead");
  }
  expect(trainer.report("pending", 1)).toBe(true);
  expect(trainer.report("pending", 2)).toBe("version_ahead");
  expect(trainer.state).toMatchObject({ acked_step: 0, published: 0, replicas: {} });
  expect(trainer.ack(serial, 1)).toMatchObject({ next_step: 2 });
  expect(trainer.report("published", 1)).toBe(true);
  expect(trainer.report("published", 1, true)).toBe(false);
  trainer.trained(2);
  trainer.report("published", 2);
  expect(trainer.report("published", 1)).toBe("conflict");
  expect(trainer.report("applied", 3)).toBe("version_ahead");
  expect(trainer.report("applied", 2)).toBe(true);
  expect(trainer.report("applied", 1)).toBe("conflict");
  expect(trainer.state.replicas).toEqual({ policy: 2 });
});

test("a batch is acknowledged under its current lease: a former holder, a wrong token and a wrong batch get their errors", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1, 2);
  trainer.register();
  const former = trainer.leased();
  trainer.now += 60_000;
  const holder = trainer.leased();
  expect(trainer.ack(null, 1)).toBe("wrong_token");
  expect(trainer.heartbeat(null)).toBe("wrong_token");
  expect(trainer.nack(null)).toBe("wrong_token");
  expect(trainer.ack(former, 1)).toBe("lease_lost");
  expect(trainer.ack(holder, 2)).toBe("wrong_batch");
  expect(trainer.ack(holder, 7)).toBe("wrong_batch");
  expect(trainer.state).toMatchObject({ acked_step: 0, lease: { serial: holder } });
  const reply = trainer.ack(holder, 1);
  expect(reply).toMatchObject({ step: 1 });
  expect(trainer.ack(former, 1)).toBe("lease_lost");
  expect(trainer.ack(holder, 1)).toEqual(reply);
  expect(trainer.ack(trainer.leased(), 1)).toBe("wrong_batch");
});

test("after a registration the previous lease may still acknowledge its batch, and no other may", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1, 2);
  trainer.register();
  const serial = trainer.leased();
  trainer.register({ version: 1, last: 1 });
  expect(trainer.ack(serial, 1)).toMatchObject({ step: 1, next_step: 2 });
  expect(trainer.ack(serial + 5, 1)).toBe("lease_lost");
});

test("an ack that was stored before leases were recorded is repeated unchanged", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1);
  trainer.register();
  const serial = trainer.leased();
  const reply = trainer.ack(serial, 1);
  const batches = trainer.state.batches.map(({ ack, ...batch }) => {
    const { lease: _, ...stored } = ack ?? { lease: 0 };
    return { ...batch, ack: stored } as (typeof trainer.state.batches)[number];
  });
  trainer.state = { ...trainer.state, batches };
  expect(trainer.ack(serial, 1)).toEqual(reply);
});

test("metrics that were not finite numbers are named in the reply, also in the reply to a repeat", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1);
  trainer.register();
  const serial = trainer.leased();
  const measured = { metrics: { loss: null, entropy: 1 }, not_finite: ["loss"] };
  const reply = trainer.ack(serial, 1, measured);
  expect(reply).toMatchObject({ step: 1, not_finite: ["loss"] });
  expect(trainer.ack(serial, 1)).toEqual(reply);
});

test("after its last step a run hands out nothing, and its trainer may still publish", () => {
  const trainer = new TrainerByHand(terms({}, 1));
  trainer.ready(1);
  trainer.register();
  trainer.trained(1);
  expect(trainer.lease(2)).toBe("run_finished");
  expect(trainer.register({ version: 1, last: 1 })).toMatchObject({ next_step: 2 });
  expect(trainer.report("published", 1)).toBe(true);
});

/** A step of 40 s: 30 s until its acknowledgement, and 10 s in which the next batch is requested and is not ready. */
function trainFor40s(trainer: TrainerByHand, step: number, metrics: Record<string, number | null> = {}) {
  const serial = trainer.leased();
  trainer.now += 30_000;
  trainer.ack(serial, step, { metrics });
  trainer.lease();
  trainer.now += 10_000;
  trainer.ready(step + 1);
}

function training(trainer = new TrainerByHand()): TrainerByHand {
  trainer.ready(1);
  trainer.register();
  return trainer;
}

test("the platform's clock gives the share without a batch, from the first lease to the last ack; an absence does not count", () => {
  const trainer = training();
  for (const step of [1, 2]) trainFor40s(trainer, step);
  const told = { waiting_for_batch: 10 / 70, not_training: null, waiting_by: "platform" };
  expect(sharesOf(trainer.state.time)).toEqual(told);
  trainer.now += 3_600_000;
  expect(sharesOf(trainer.state.time)).toEqual(told);
  trainer.register({ version: 2, last: 2 });
  trainFor40s(trainer, 3);
  expect(sharesOf(trainer.state.time)).toMatchObject({ waiting_for_batch: 10 / 100 });
});

test("a trainer's report of a step replaces what the platform measured, and is at most the length of the step", () => {
  const trainer = training();
  trainFor40s(trainer, 1, { wait_s: 500, train_s: 24 });
  trainFor40s(trainer, 2, { wait_s: 4, train_s: 28 });
  expect(sharesOf(trainer.state.time)).toEqual({
    ...{ waiting_for_batch: 4 / 70, waiting_by: "trainer" },
    not_training: expect.closeTo(1 - 52 / 70, 9),
  });
  trainFor40s(trainer, 3, { wait_s: -1, train_s: null });
  expect(sharesOf(trainer.state.time)).toEqual({
    ...{ waiting_for_batch: 14 / 110, waiting_by: "both" },
    not_training: expect.closeTo(1 - 52 / 70, 9),
  });
  trainFor40s(trainer, 4, { wait_s: 500, train_s: 500 });
  expect(sharesOf(trainer.state.time)).toMatchObject({ waiting_for_batch: 54 / 150 });
});

test("a trainer's report of a step after its weights were published counts the same", () => {
  const trainer = training(new TrainerByHand(terms({ ...PUSH, delivery: "both" })));
  trainFor40s(trainer, 1, { wait_s: 3, train_s: 24 });
  const { serial } = trainer.offer();
  trainer.heartbeat(serial);
  trainer.now += 30_000;
  trainer.report("published", 2);
  expect(sharesOf(trainer.state.time)).toMatchObject({ waiting_for_batch: 10 / 70 });
  const metrics = { wait_s: 4, train_s: 28 };
  for (const _again of [1, 2]) trainer.ack(serial, 2, { metrics });
  expect(sharesOf(trainer.state.time)).toEqual({
    ...{ waiting_for_batch: 4 / 70, waiting_by: "trainer" },
    not_training: expect.closeTo(1 - 52 / 70, 9),
  });
});

test("an ack with published weights is accepted with them, or not at all; a repeat changes nothing", () => {
  const trainer = new TrainerByHand();
  trainer.ready(1, 2, 3);
  trainer.register();
  const serial = trainer.leased();
  const before = trainer.state;
  expect(trainer.ack(serial, 1, { epoch: 0, published: {} })).toBe("epoch_fenced");
  expect(trainer.state).toBe(before);
  const reply = { batch_id: "bat_0_1", step: 1, next_step: 2, published: 1 };
  expect(trainer.ack(serial, 1, { published: {} })).toEqual(reply);
  expect(trainer.state).toMatchObject({ acked_step: 1, published: 1, lease: null });
  const { state } = trainer;
  expect(trainer.ack(serial, 1, { published: {} }, true)).toEqual(reply);
  expect(trainer.state).toEqual(state);
});
