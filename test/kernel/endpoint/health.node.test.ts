import fc from "fast-check";
import { expect, test } from "vitest";
import {
  afterOutcomes,
  FAILURES_TO_OPEN,
  HEALTHY,
  type Health,
  NO_OUTCOMES,
  nextStepAt,
  renew,
  statusReasonOfHealth,
  takeProbe,
  windowOf,
} from "../../../src/kernel/endpoint/health.ts";
import type { Outcomes } from "../../../src/kernel/messages/endpoint-wire.ts";

const NOW = 1_000_000;
const MINUTE = 60_000;

function after(health: Health, outcomes: Partial<Outcomes>, now = NOW, running = 0): Health {
  return afterOutcomes(health, { ...NO_OUTCOMES, ...outcomes }, { model: "m", running, now });
}

function down(now = NOW): Health {
  return after(HEALTHY, { streak: FAILURES_TO_OPEN, error: "500 no" }, now);
}

test("failures in a row open the circuit, even of different runs; one answer in between restarts the count", () => {
  const some = after(HEALTHY, { streak: 6, error: "500 no" });
  expect(statusReasonOfHealth(some, NOW)).toBeNull();
  expect(after(some, { ok_at: NOW, streak: 6 }).outage).toBeNull();
  const opened = after(some, { streak: 4, error: "502 gone" });
  expect(statusReasonOfHealth(opened, NOW)).toEqual({
    state: "endpoint_down",
    reason: "10 rollouts in a row failed at the endpoint: 502 gone",
  });
});

test("only an answer after the circuit opened closes it: one at the same moment may have been before", () => {
  const opened = down();
  expect(after(opened, { ok_at: NOW }).outage).not.toBeNull();
  expect(after(opened, { ok_at: NOW + 1 }).outage).toBeNull();
});

test("if the failures were 429 replies the reason is the endpoint's limit, not an outage", () => {
  const opened = after(HEALTHY, { streak: 10, calls: 30, limited: 30, error: "429" }, NOW, 50);
  expect(statusReasonOfHealth(opened, NOW)?.state).toBe("rate_limited");
});

test("a probe is made 5 s after the last failure, then after twice as long each time up to 20 s", () => {
  let health = down();
  const waits: number[] = [];
  let now = NOW;
  for (let probes = 0; probes < 9; probes += 1) {
    const at = health.outage?.probe_at ?? 0;
    waits.push((at - now) / 1000);
    now = at;
    health = takeProbe(health, "connection refused", now);
  }
  expect(waits).toEqual([5, 10, 20, 20, 20, 20, 20, 20, 20]);
  expect(statusReasonOfHealth(health, now)?.reason).toContain("connection refused");
  expect(takeProbe(health, null, now).outage).toBeNull();
});

test("an outage within 5 minutes after another continues with its waits, a later one starts again", () => {
  const over = takeProbe(takeProbe(down(), "no", NOW + 5000), null, NOW + 15_000);
  expect((down(NOW).outage?.probe_at ?? 0) - NOW).toBe(5000);
  const again = (now: number) => after(over, { streak: 10 }, now).outage?.probe_at ?? 0;
  expect(again(NOW + 2 * MINUTE) - (NOW + 2 * MINUTE)).toBe(20_000);
  expect(again(NOW + 20 * MINUTE) - (NOW + 20 * MINUTE)).toBe(5000);
});

test("during an outage a rollout that gets an answer closes the circuit; one answered before does not", () => {
  expect(after(down(), { ok_at: NOW - 1 }, NOW + 900).outage).not.toBeNull();
  expect(after(down(), { ok_at: NOW + 500 }, NOW + 900).outage).toBeNull();
  expect(after(down(), { streak: 20 }, NOW + 900).outage).toEqual(down().outage);
});

test("another address or key is probed at once", () => {
  const waiting = takeProbe(takeProbe(down(), "no", NOW), "no", NOW);
  expect(renew(waiting, NOW + 1).outage).toMatchObject({ probe_at: NOW + 1, level: 0 });
});

test("if a tenth of the calls get a 429 the concurrent rollouts are halved, again after 10 s, and raised by a step every 10 s", () => {
  const cut = after(HEALTHY, { calls: 30, limited: 3 }, NOW, 40);
  expect(windowOf(cut, NOW)).toBe(20);
  expect(statusReasonOfHealth(cut, NOW)).toMatchObject({ state: "rate_limited" });
  expect(windowOf(after(cut, { calls: 9, limited: 9 }, NOW + 9000, 20), NOW + 9000)).toBe(20);
  expect(windowOf(after(cut, { calls: 9, limited: 9 }, NOW + 10_000, 20), NOW + 10_000)).toBe(10);
  expect(windowOf(cut, NOW + 10_000)).toBe(22);
  expect(nextStepAt(cut, NOW + 10_000)).toBe(NOW + 20_000);
  expect(windowOf(cut, NOW + 100_000)).toBe(Number.POSITIVE_INFINITY);
  expect(nextStepAt(cut, NOW + 100_000)).toBeNull();
});

test("a few 429 replies cut nothing, and however many there are an eighth of the rollouts continues", () => {
  expect(after(HEALTHY, { calls: 100, limited: 9 }, NOW, 40).squeeze).toBeNull();
  expect(after(HEALTHY, { calls: 2, limited: 2 }, NOW, 40).squeeze).toBeNull();
  let health = HEALTHY;
  for (let cut = 0; cut < 20; cut += 1) {
    const now = NOW + cut * 10_000;
    health = after(health, { calls: 10, limited: 5 }, now, Math.min(40, windowOf(health, now)));
    expect(windowOf(health, now)).toBeGreaterThanOrEqual(5);
  }
});

test("at least one concurrent rollout is always left, and after an hour without trouble everything is open", () => {
  const event = fc.record({
    limited: fc.nat(9),
    streak: fc.nat(12),
    ok: fc.boolean(),
    running: fc.nat(50),
    wait: fc.nat(30_000),
    probe: fc.constantFrom(null, "no", "none"),
  });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 60 }), (events) => {
      let now = NOW;
      let health = HEALTHY;
      for (const { limited, streak, ok, running, wait, probe } of events) {
        now += wait;
        health = after(health, { calls: limited, limited, streak, ok_at: ok ? now : null }, now, running);
        if (probe !== "none") health = takeProbe(health, probe, now);
        expect(windowOf(health, now)).toBeGreaterThanOrEqual(1);
        expect(health.outage?.probe_at ?? now).toBeLessThanOrEqual(now + 5 * MINUTE);
      }
      now += 60 * MINUTE;
      expect(statusReasonOfHealth(takeProbe(health, null, now), now)).toBeNull();
    }),
  );
});
