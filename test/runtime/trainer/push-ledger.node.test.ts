/** What becomes of offers to a trainer's address: pure, by a clock of the test's own. */
import { expect, test } from "vitest";
import { batch, Ledger, PUSH, terms } from "../trainer-ledger-driver.ts";

const HOUR = 3_600_000;

test("a trainer that is away for an hour is offered its batch a few times, and loses nothing", () => {
  const ledger = new Ledger(terms(PUSH));
  ledger.ready(1);
  const away = { kind: "absent", message: "connection refused" } as const;
  const serials = new Set<number>();
  let offers = 0;
  for (let at = ledger.offerAt(); at !== null && at < HOUR; offers += 1) {
    ledger.now = at;
    const made = ledger.offer();
    serials.add(made.serial);
    ledger.answered(made, away);
    at = ledger.offerAt();
  }
  expect(offers).toBeGreaterThan(10);
  expect(offers).toBeLessThan(20);
  expect(serials.size).toBe(1);
  ledger.now = HOUR * 2;
  const made = ledger.offer();
  ledger.answered(made, { kind: "accepted" });
  expect(ledger.state.lease).toMatchObject({ step: 1, attempt: 1, by: "push" });
});

test("a trainer that is busy is asked again when it says, without an attempt; what it refuses costs one", () => {
  const ledger = new Ledger(terms(PUSH));
  ledger.ready(1);
  const first = ledger.offer();
  const busy = { kind: "busy", retry_after_ms: 7000 } as const;
  ledger.answered(first, busy);
  expect(ledger.offerAt()).toBe(7000);
  const refusal = { kind: "refused", message: "the trainer answered 422" } as const;
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    ledger.now = ledger.offerAt() ?? Number.NaN;
    const made = ledger.offer();
    expect(made.attempt).toBe(attempt);
    if (made !== null) ledger.answered(made, refusal);
  }
  expect(ledger.state.batches[0]).toMatchObject({
    state: "dead",
    fault: { reason: refusal.message },
  });
});

test.each([
  ["0", 0, 1000],
  ["none", null, 15_000],
  ["a year", 31_536_000_000, 600_000],
])("a busy trainer that asks for %s is asked neither at once nor never", (_, asked, wait) => {
  const ledger = new Ledger(terms(PUSH));
  ledger.ready(1);
  ledger.answered(ledger.offer(), { kind: "busy", retry_after_ms: asked });
  expect(ledger.offerAt()).toBe(wait);
});

test("after 410 nothing is offered and the trainer may lease, until it registers again", () => {
  const ledger = new Ledger(terms(PUSH));
  ledger.ready(1);
  ledger.register();
  expect(ledger.lease()).toBe("conflict");
  const made = ledger.offer();
  ledger.answered(made, { kind: "gone" });
  expect(ledger.offerAt()).toBeNull();
  expect(ledger.leased()).toBeGreaterThan(0);
  ledger.register();
  expect(ledger.offerAt()).toBe(0);
});

test("whoever heartbeats or acknowledges an offer has taken it, though its answer to it was lost", () => {
  const ledger = new Ledger(terms(PUSH));
  ledger.ready(1, 2);
  const first = ledger.offer();
  expect(ledger.heartbeat(first.serial)).toEqual({ expires_at: 60_000 });
  const lost = { kind: "absent", message: "timeout" } as const;
  ledger.answered(first, lost);
  expect(ledger.ack(first.serial, 1)).toMatchObject({ next_step: 2 });
  expect(ledger.offerAt()).toBe(0);
});

test("where both are allowed, a lease that is taken while an offer is under way wins", () => {
  const ledger = new Ledger(terms({ ...PUSH, delivery: "both" }));
  ledger.ready(1);
  ledger.register();
  const made = ledger.offer();
  const serial = ledger.leased();
  ledger.answered(made, { kind: "accepted" });
  expect(ledger.state.lease?.serial).toBe(serial);
  expect(ledger.heartbeat(made.serial)).toBe("lease_lost");
});

test("a trainer that trains before it answers is acknowledged by its answer", () => {
  const ledger = new Ledger(terms(PUSH));
  ledger.ready(1, 2);
  const made = ledger.offer();
  const { sha256 } = batch(1);
  const acked = { kind: "acked", sha256, produced_version: 1, metrics: { loss: 1 } } as const;
  // Its report of the weights overtakes the end of its answer.
  expect(ledger.report("published", 1)).toBe(true);
  ledger.answered(made, acked);
  expect(ledger.state).toMatchObject({ acked_step: 1, published: 1, lease: null, offer: null });
  expect(ledger.state.batches[0]?.ack?.metrics).toEqual({ loss: 1 });
});

test("a pushed batch that was accepted is acknowledged by a call: weights reported before it are ahead", () => {
  const ledger = new Ledger(terms(PUSH));
  ledger.ready(1, 2);
  const made = ledger.offer();
  ledger.heartbeat(made.serial);
  ledger.answered(made, { kind: "accepted" });
  expect(ledger.report("published", 1)).toBe("version_ahead");
  expect(ledger.ack(null, 1)).toBe("wrong_token");
  expect(ledger.ack(made.serial, 2)).toBe("wrong_batch");
  expect(ledger.ack(made.serial, 1)).toMatchObject({ next_step: 2 });
  expect(ledger.report("published", 1)).toBe(true);
});

test("an answer that acknowledges another batch costs an attempt, and one that comes after the ack costs nothing", () => {
  const ledger = new Ledger(terms({ ...PUSH, delivery: "both" }));
  ledger.ready(1, 2);
  ledger.register();
  const other = {
    kind: "acked",
    sha256: batch(2).sha256,
    produced_version: 1,
    metrics: {},
  } as const;
  const first = ledger.offer();
  ledger.answered(first, other);
  expect(ledger.state.batches[0]).toMatchObject({ state: "ready", attempts: 1 });
  ledger.now = ledger.offerAt() ?? Number.NaN;
  const second = ledger.offer();
  ledger.trained(1);
  ledger.answered(second, other);
  expect(ledger.state).toMatchObject({ acked_step: 1 });
  expect(ledger.state.batches[0]).toMatchObject({ state: "acked", attempts: 2 });
});
