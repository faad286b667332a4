/** Offers to a trainer's address and their results: pure, with a clock of the test's own. */
import { expect, test } from "vitest";
import { batch, PUSH, TrainerByHand, terms } from "../trainer-by-hand.ts";

const HOUR = 3_600_000;

test("a trainer that is away for an hour is offered its batch a few times, and loses nothing", () => {
  const trainer = new TrainerByHand(terms(PUSH));
  trainer.ready(1);
  const away = { kind: "absent", message: "connection refused" } as const;
  const serials = new Set<number>();
  let offers = 0;
  for (let at = trainer.offerAt(); at !== null && at < HOUR; offers += 1) {
    trainer.now = at;
    const made = trainer.offer();
    serials.add(made.serial);
    trainer.answered(made, away);
    at = trainer.offerAt();
  }
  expect(offers).toBeGreaterThan(10);
  expect(offers).toBeLessThan(20);
  expect(serials.size).toBe(1);
  trainer.now = HOUR * 2;
  const made = trainer.offer();
  trainer.answered(made, { kind: "accepted" });
  expect(trainer.state.lease).toMatchObject({ step: 1, attempt: 1, by: "push" });
});

test("a busy trainer gets the offer again at the time it names, without an attempt; a refusal costs one", () => {
  const trainer = new TrainerByHand(terms(PUSH));
  trainer.ready(1);
  const first = trainer.offer();
  const busy = { kind: "busy", retry_after_ms: 7000 } as const;
  trainer.answered(first, busy);
  expect(trainer.offerAt()).toBe(7000);
  const refusal = { kind: "refused", message: "the trainer answered 422" } as const;
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    trainer.now = trainer.offerAt() ?? Number.NaN;
    const made = trainer.offer();
    expect(made.attempt).toBe(attempt);
    if (made !== null) trainer.answered(made, refusal);
  }
  expect(trainer.state.batches[0]).toMatchObject({
    state: "dead",
    fault: { reason: refusal.message },
  });
});

test.each([
  ["0", 0, 1000],
  ["none", null, 15_000],
  ["a year", 31_536_000_000, 600_000],
])("a busy trainer that asks for %s gets the next offer neither at once nor never", (_, asked, wait) => {
  const trainer = new TrainerByHand(terms(PUSH));
  trainer.ready(1);
  trainer.answered(trainer.offer(), { kind: "busy", retry_after_ms: asked });
  expect(trainer.offerAt()).toBe(wait);
});

test("after a 410 nothing is offered and the trainer may lease, until it registers again", () => {
  const trainer = new TrainerByHand(terms(PUSH));
  trainer.ready(1);
  trainer.register();
  expect(trainer.lease()).toBe("conflict");
  const made = trainer.offer();
  trainer.answered(made, { kind: "gone" });
  expect(trainer.offerAt()).toBeNull();
  expect(trainer.leased()).toBeGreaterThan(0);
  trainer.register();
  expect(trainer.offerAt()).toBe(0);
});

test("a heartbeat or an ack of an offer takes it, even if the answer to the offer was lost", () => {
  const trainer = new TrainerByHand(terms(PUSH));
  trainer.ready(1, 2);
  const first = trainer.offer();
  expect(trainer.heartbeat(first.serial)).toEqual({ expires_at: 60_000 });
  const lost = { kind: "absent", message: "timeout" } as const;
  trainer.answered(first, lost);
  expect(trainer.ack(first.serial, 1)).toMatchObject({ next_step: 2 });
  expect(trainer.offerAt()).toBe(0);
});

test("if both are allowed, a lease that is taken during an offer wins", () => {
  const trainer = new TrainerByHand(terms({ ...PUSH, delivery: "both" }));
  trainer.ready(1);
  trainer.register();
  const made = trainer.offer();
  const serial = trainer.leased();
  trainer.answered(made, { kind: "accepted" });
  expect(trainer.state.lease?.serial).toBe(serial);
  expect(trainer.heartbeat(made.serial)).toBe("lease_lost");
});

test("a trainer that trains before it answers acknowledges by its answer", () => {
  const trainer = new TrainerByHand(terms(PUSH));
  trainer.ready(1, 2);
  const made = trainer.offer();
  const { sha256 } = batch(1);
  const acked = { kind: "acked", sha256, produced_version: 1, metrics: { loss: 1 } } as const;
  // Its report of the weights arrives before the end of its answer.
  expect(trainer.report("published", 1)).toBe(true);
  trainer.answered(made, acked);
  expect(trainer.state).toMatchObject({ acked_step: 1, published: 1, lease: null, offer: null });
  expect(trainer.state.batches[0]?.ack?.metrics).toEqual({ loss: 1 });
});

test("a pushed batch that was accepted is acknowledged by a call: weights reported before it are ahead", () => {
  const trainer = new TrainerByHand(terms(PUSH));
  trainer.ready(1, 2);
  const made = trainer.offer();
  trainer.heartbeat(made.serial);
  trainer.answered(made, { kind: "accepted" });
  expect(trainer.report("published", 1)).toBe("version_ahead");
  expect(trainer.ack(null, 1)).toBe("wrong_token");
  expect(trainer.ack(made.serial, 2)).toBe("wrong_batch");
  expect(trainer.ack(made.serial, 1)).toMatchObject({ next_step: 2 });
  expect(trainer.report("published", 1)).toBe(true);
});

test("an answer that acknowledges another batch costs an attempt, and one that arrives after the ack costs nothing", () => {
  const trainer = new TrainerByHand(terms({ ...PUSH, delivery: "both" }));
  trainer.ready(1, 2);
  trainer.register();
  const other = {
    kind: "acked",
    sha256: batch(2).sha256,
    produced_version: 1,
    metrics: {},
  } as const;
  const first = trainer.offer();
  trainer.answered(first, other);
  expect(trainer.state.batches[0]).toMatchObject({ state: "ready", attempts: 1 });
  trainer.now = trainer.offerAt() ?? Number.NaN;
  const second = trainer.offer();
  trainer.trained(1);
  trainer.answered(second, other);
  expect(trainer.state).toMatchObject({ acked_step: 1 });
  expect(trainer.state.batches[0]).toMatchObject({ state: "acked", attempts: 2 });
});
