/** What a trainer's object decides for one that leases: pure, so every case is a state and a call. */
import { expect, test } from "vitest";
import { sharesOf } from "../../../src/runtime/contract/trainer-time.ts";
import { revive } from "../../../src/runtime/trainer/ledger.ts";
import { Ledger, PUSH, terms } from "../trainer-ledger-driver.ts";

test("a trainer that died after its lease gets the batch again once the lease has ended, with one attempt more", () => {
  const ledger = new Ledger();
  ledger.ready(1);
  ledger.register();
  ledger.leased();
  ledger.now += 60_000;
  expect(ledger.lease()).toMatchObject({ lease: { attempt: 2 }, batch: { step: 1 } });
});

test("a trainer that died before its checkpoint registers with the version before and gets the same batch", () => {
  const ledger = new Ledger();
  ledger.ready(1, 2);
  ledger.register();
  ledger.trained(1);
  ledger.leased();
  expect(ledger.register({ version: 1, last: 1 })).toMatchObject({ epoch: 2, next_step: 2 });
  expect(ledger.lease()).toMatchObject({ batch: { batch_id: "bat_0_2" } });
});

test("a batch in the checkpoint of a trainer that died before its ack counts as acknowledged, and is not trained again", () => {
  const ledger = new Ledger();
  ledger.ready(1, 2);
  ledger.register();
  ledger.leased();
  expect(ledger.register({ version: 1, last: 1 })).toMatchObject({ epoch: 2, next_step: 2 });
  expect(ledger.lease()).toMatchObject({ batch: { step: 2 } });
});

test("an ack that is repeated is answered as the first was, also when the lease is gone and weights are out", () => {
  const ledger = new Ledger();
  ledger.ready(1, 2);
  ledger.register();
  const serial = ledger.leased();
  const reply = { batch_id: "bat_0_1", step: 1, next_step: 2, published: 0 };
  expect(ledger.ack(serial, 1)).toEqual(reply);
  ledger.report("published", 1);
  ledger.leased();
  expect(ledger.ack(serial, 1)).toEqual(reply);
});

test("whatever a trainer says after another has registered is fenced off, and changes nothing", () => {
  const ledger = new Ledger();
  ledger.ready(1);
  ledger.register();
  const serial = ledger.leased();
  ledger.register({ id: "t1" });
  const before = ledger.state;
  expect(ledger.ack(serial, 1, { epoch: 1 })).toBe("epoch_fenced");
  expect(ledger.heartbeat(serial, 1)).toBe("epoch_fenced");
  expect(ledger.lease(1, 1)).toBe("epoch_fenced");
  expect(ledger.state).toBe(before);
});

test("a trainer with weights older than those published has to say that it goes back; then everything since is void", () => {
  const ledger = new Ledger();
  ledger.ready(1, 2, 3);
  ledger.register();
  ledger.trained(1, 2);
  ledger.report("published", 2);
  expect(ledger.register({ version: 1, last: 1 })).toBe("conflict");
  const current = { version: 1, reset_to: 1 };
  expect(ledger.register({ version: 1 })).toBe("needs_reset");
  expect(ledger.register(current)).toMatchObject({ next_step: 2, published: 1 });
  expect(ledger.state).toMatchObject({ generation: 1, reset_to: 1, batches: [] });
  expect(ledger.lease()).toMatchObject({ waiting: "waiting_for_rollouts" });
  ledger.ready(2);
  expect(ledger.lease()).toMatchObject({ batch: { batch_id: "bat_1_2" } });
});

test("a reset that is asked for twice, because its answer was lost, goes back once", () => {
  const ledger = new Ledger();
  ledger.ready(1, 2);
  ledger.register();
  ledger.trained(1, 2);
  ledger.report("published", 2);
  ledger.register({ reset_to: 1 });
  ledger.register({ reset_to: 1 });
  expect(ledger.state).toMatchObject({ generation: 1, published: 1, epoch: 3 });
});

test("acknowledged batches whose weights nobody published are handed out again to a trainer without them", () => {
  const ledger = new Ledger();
  ledger.ready(1, 2, 3);
  ledger.register();
  ledger.trained(1, 2);
  ledger.report("published", 1);
  expect(ledger.register({ version: 1 })).toMatchObject({ next_step: 2 });
  expect(ledger.lease()).toMatchObject({ batch: { batch_id: "bat_0_2" }, lease: { attempt: 1 } });
});

test("a trainer cannot hold weights that nothing was acknowledged for", () => {
  const ledger = new Ledger();
  ledger.ready(1, 2);
  ledger.register();
  expect(ledger.register({ version: 1 })).toBe("version_ahead");
  expect(ledger.register({ version: 2, last: 2 })).toBe("conflict");
});

test("a lease asked for again is the same lease", () => {
  const ledger = new Ledger();
  ledger.ready(1, 2);
  ledger.register();
  expect(ledger.leased()).toBe(ledger.leased());
  expect(ledger.lease(2)).toBe("step_mismatch");
});

test("a batch is taken up once: told again, acknowledged, or of a generation that is over, it adds nothing", () => {
  const ledger = new Ledger();
  const steps = () => ledger.state.batches.map(({ step, state }) => [step, state]);
  ledger.ready(1, 2);
  ledger.ready(2, 1);
  expect(steps()).toEqual([
    [1, "ready"],
    [2, "ready"],
  ]);
  ledger.register();
  ledger.trained(1, 2);
  ledger.report("published", 2);
  ledger.ready(1, 2);
  expect(steps()).toEqual([[2, "acked"]]);
  ledger.register({ reset_to: 1 });
  ledger.readyIn(0, 2, 3);
  expect(steps()).toEqual([]);
});

test("a batch is not acknowledged by what was trained on other bytes", () => {
  const ledger = new Ledger();
  ledger.ready(1);
  ledger.register();
  const serial = ledger.leased();
  expect(ledger.ack(serial, 1, { sha256: "0".repeat(64) })).toBe("conflict");
  expect(ledger.state).toMatchObject({ acked_step: 0, lease: { serial } });
});

test("a checkpoint that holds what is acknowledged already leaves that acknowledgement as it is", () => {
  const ledger = new Ledger();
  ledger.ready(1);
  ledger.register();
  ledger.ack(ledger.leased(), 1, { metrics: { loss: 1 } });
  const acked = ledger.state.batches[0];
  ledger.now += 1000;
  expect(ledger.register({ version: 1, last: 1 })).toMatchObject({ epoch: 2, next_step: 2 });
  expect(ledger.state.batches).toEqual([acked]);
});

test("a batch whose leases all come to nothing is dead; revived, it has all its attempts again", () => {
  const ledger = new Ledger();
  ledger.ready(1);
  ledger.register();
  expect(ledger.nack(ledger.leased())).toEqual({ state: "ready" });
  ledger.leased();
  ledger.now += 60_000;
  expect(ledger.nack(ledger.leased())).toEqual({ state: "dead" });
  expect(ledger.lease()).toMatchObject({ waiting: "paused" });
  ledger.state = revive(ledger.state, 1, ledger.now);
  expect(ledger.lease()).toMatchObject({ lease: { attempt: 1 } });
});

test("a nack that nothing can help is the end of a batch at once, and one for a shutdown costs it nothing", () => {
  const ledger = new Ledger();
  ledger.ready(1);
  ledger.register();
  for (let at = 0; at < 5; at += 1) ledger.nack(ledger.leased(), true, "shutdown");
  const serial = ledger.leased();
  expect(ledger.state.lease?.attempt).toBe(1);
  expect(ledger.nack(serial, false, "invalid")).toEqual({ state: "dead" });
  expect(ledger.nack(serial, false, "invalid")).toEqual({ state: "dead" });
});

test("an ack that comes after its lease has ended counts, unless the batch was handed out again", () => {
  const ledger = new Ledger();
  ledger.ready(1, 2);
  ledger.register();
  const first = ledger.leased();
  ledger.now += 60_000;
  expect(ledger.heartbeat(first)).toBe("lease_lost");
  expect(ledger.ack(first, 1)).toMatchObject({ next_step: 2 });
  const second = ledger.leased();
  ledger.now += 60_000;
  ledger.leased();
  expect(ledger.ack(second, 2)).toBe("lease_lost");
});

test("a heartbeat keeps a lease for as long as it was asked for", () => {
  const ledger = new Ledger();
  ledger.ready(1);
  ledger.register();
  const serial = ledger.leased();
  for (let at = 0; at < 5; at += 1) {
    ledger.now += 59_000;
    expect(ledger.heartbeat(serial)).toEqual({ expires_at: ledger.now + 60_000 });
  }
});

test("weights are published and applied after the ack of their batch, once and in order; what is only pending may be the next", () => {
  const ledger = new Ledger();
  ledger.ready(1, 2);
  ledger.register();
  expect(ledger.report("published", 1)).toBe("version_ahead");
  const serial = ledger.leased();
  for (const state of ["published", "applied"] as const) {
    expect(ledger.report(state, 1)).toBe("version_ahead");
  }
  expect(ledger.report("pending", 1)).toBe(true);
  expect(ledger.report("pending", 2)).toBe("version_ahead");
  expect(ledger.state).toMatchObject({ acked_step: 0, published: 0, replicas: {} });
  expect(ledger.ack(serial, 1)).toMatchObject({ next_step: 2 });
  expect(ledger.report("published", 1)).toBe(true);
  expect(ledger.report("published", 1, true)).toBe(false);
  ledger.trained(2);
  ledger.report("published", 2);
  expect(ledger.report("published", 1)).toBe("conflict");
  expect(ledger.report("applied", 3)).toBe("version_ahead");
  expect(ledger.report("applied", 2)).toBe(true);
  expect(ledger.report("applied", 1)).toBe("conflict");
  expect(ledger.state.replicas).toEqual({ policy: 2 });
});

test("a batch is acknowledged under the lease that is on it: a former holder, another's token and another batch are told so", () => {
  const ledger = new Ledger();
  ledger.ready(1, 2);
  ledger.register();
  const former = ledger.leased();
  ledger.now += 60_000;
  const holder = ledger.leased();
  expect(ledger.ack(null, 1)).toBe("wrong_token");
  expect(ledger.heartbeat(null)).toBe("wrong_token");
  expect(ledger.nack(null)).toBe("wrong_token");
  expect(ledger.ack(former, 1)).toBe("lease_lost");
  expect(ledger.ack(holder, 2)).toBe("wrong_batch");
  expect(ledger.ack(holder, 7)).toBe("wrong_batch");
  expect(ledger.state).toMatchObject({ acked_step: 0, lease: { serial: holder } });
  const reply = ledger.ack(holder, 1);
  expect(reply).toMatchObject({ step: 1 });
  expect(ledger.ack(former, 1)).toBe("lease_lost");
  expect(ledger.ack(holder, 1)).toEqual(reply);
  expect(ledger.ack(ledger.leased(), 1)).toBe("wrong_batch");
});

test("after a registration the lease that was out may still say what it trained, and no other may", () => {
  const ledger = new Ledger();
  ledger.ready(1, 2);
  ledger.register();
  const serial = ledger.leased();
  ledger.register({ version: 1, last: 1 });
  expect(ledger.ack(serial, 1)).toMatchObject({ step: 1, next_step: 2 });
  expect(ledger.ack(serial + 5, 1)).toBe("lease_lost");
});

test("an ack that was stored before its lease was noted is repeated as it was", () => {
  const ledger = new Ledger();
  ledger.ready(1);
  ledger.register();
  const serial = ledger.leased();
  const reply = ledger.ack(serial, 1);
  const batches = ledger.state.batches.map(({ ack, ...batch }) => {
    const { lease: _, ...stored } = ack ?? { lease: 0 };
    return { ...batch, ack: stored } as (typeof ledger.state.batches)[number];
  });
  ledger.state = { ...ledger.state, batches };
  expect(ledger.ack(serial, 1)).toEqual(reply);
});

test("metrics that were no finite number are named in the reply, also in one to a repeat", () => {
  const ledger = new Ledger();
  ledger.ready(1);
  ledger.register();
  const serial = ledger.leased();
  const measured = { metrics: { loss: null, entropy: 1 }, not_finite: ["loss"] };
  const reply = ledger.ack(serial, 1, measured);
  expect(reply).toMatchObject({ step: 1, not_finite: ["loss"] });
  expect(ledger.ack(serial, 1)).toEqual(reply);
});

test("after its last step a run hands out nothing, and its trainer may still publish", () => {
  const ledger = new Ledger(terms({}, 1));
  ledger.ready(1);
  ledger.register();
  ledger.trained(1);
  expect(ledger.lease(2)).toBe("run_finished");
  expect(ledger.register({ version: 1, last: 1 })).toMatchObject({ next_step: 2 });
  expect(ledger.report("published", 1)).toBe(true);
});

/** A step of 40 s: 30 s until its acknowledgement, and 10 s in which the next batch is asked for and is not there. */
function trainFor40s(ledger: Ledger, step: number, metrics: Record<string, number | null> = {}) {
  const serial = ledger.leased();
  ledger.now += 30_000;
  ledger.ack(serial, step, { metrics });
  ledger.lease();
  ledger.now += 10_000;
  ledger.ready(step + 1);
}

function training(ledger = new Ledger()): Ledger {
  ledger.ready(1);
  ledger.register();
  return ledger;
}

test("the platform's clock tells the share in which no batch was there, from the first lease to the last ack; an absence counts neither way", () => {
  const ledger = training();
  for (const step of [1, 2]) trainFor40s(ledger, step);
  const told = { waiting_for_batch: 10 / 70, not_training: null, waiting_by: "platform" };
  expect(sharesOf(ledger.state.time)).toEqual(told);
  ledger.now += 3_600_000;
  expect(sharesOf(ledger.state.time)).toEqual(told);
  ledger.register({ version: 2, last: 2 });
  trainFor40s(ledger, 3);
  expect(sharesOf(ledger.state.time)).toMatchObject({ waiting_for_batch: 10 / 100 });
});

test("what a trainer tells of a step goes before what the platform saw of it, and is no more than the step took", () => {
  const ledger = training();
  trainFor40s(ledger, 1, { wait_s: 500, train_s: 24 });
  trainFor40s(ledger, 2, { wait_s: 4, train_s: 28 });
  expect(sharesOf(ledger.state.time)).toEqual({
    ...{ waiting_for_batch: 4 / 70, waiting_by: "trainer" },
    not_training: expect.closeTo(1 - 52 / 70, 9),
  });
  trainFor40s(ledger, 3, { wait_s: -1, train_s: null });
  expect(sharesOf(ledger.state.time)).toEqual({
    ...{ waiting_for_batch: 14 / 110, waiting_by: "both" },
    not_training: expect.closeTo(1 - 52 / 70, 9),
  });
  trainFor40s(ledger, 4, { wait_s: 500, train_s: 500 });
  expect(sharesOf(ledger.state.time)).toMatchObject({ waiting_for_batch: 54 / 150 });
});

test("what a trainer tells of a step only after its weights were out counts the same", () => {
  const ledger = training(new Ledger(terms({ ...PUSH, delivery: "both" })));
  trainFor40s(ledger, 1, { wait_s: 3, train_s: 24 });
  const { serial } = ledger.offer();
  ledger.heartbeat(serial);
  ledger.now += 30_000;
  ledger.report("published", 2);
  expect(sharesOf(ledger.state.time)).toMatchObject({ waiting_for_batch: 10 / 70 });
  const metrics = { wait_s: 4, train_s: 28 };
  for (const _again of [1, 2]) ledger.ack(serial, 2, { metrics });
  expect(sharesOf(ledger.state.time)).toEqual({
    ...{ waiting_for_batch: 4 / 70, waiting_by: "trainer" },
    not_training: expect.closeTo(1 - 52 / 70, 9),
  });
});

test("an ack that says its weights are out is taken with them, or not at all; said again it changes nothing", () => {
  const ledger = new Ledger();
  ledger.ready(1, 2, 3);
  ledger.register();
  const serial = ledger.leased();
  const before = ledger.state;
  expect(ledger.ack(serial, 1, { epoch: 0, published: {} })).toBe("epoch_fenced");
  expect(ledger.state).toBe(before);
  const reply = { batch_id: "bat_0_1", step: 1, next_step: 2, published: 1 };
  expect(ledger.ack(serial, 1, { published: {} })).toEqual(reply);
  expect(ledger.state).toMatchObject({ acked_step: 1, published: 1, lease: null });
  const { state } = ledger;
  expect(ledger.ack(serial, 1, { published: {} }, true)).toEqual(reply);
  expect(ledger.state).toEqual(state);
});
