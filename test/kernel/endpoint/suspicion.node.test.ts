/** When failed calls mean that their endpoint is down. */
import { expect, test } from "vitest";
import {
  clear,
  type ProbeFault,
  type Suspicion,
  settleProbe,
  suspect,
  UNSUSPECTED,
} from "../../../src/kernel/endpoint/suspicion.ts";

const NOW = 1_000_000;
const REFUSED: ProbeFault = { error: "503 no", kind: "refused" };

function failing(rollouts: number, from = UNSUSPECTED, limited = false, now = NOW): Suspicion {
  return Array.from({ length: rollouts }, (_, index) => `ro_${index}`).reduce(
    (before, rollout_id) => suspect(before, { rollout_id, model: "m", limited }, now),
    from,
  );
}

test("failed calls of ten rollouts cause a probe at once; those of nine, or ten of one rollout, do not", () => {
  expect(failing(9).probe_at).toBeNull();
  expect(failing(10)).toMatchObject({ probe_at: NOW, model: "m" });
  expect(Array.from({ length: 10 }).reduce(() => failing(1), UNSUSPECTED)).toMatchObject({
    probe_at: null,
  });
});

test("replies of 429, and failures a minute ago, are no sign of an outage", () => {
  expect(failing(10, UNSUSPECTED, true).probe_at).toBeNull();
  const old = failing(9);
  const later = suspect(old, { rollout_id: "ro_9", model: "m", limited: false }, NOW + 60_000);
  expect(later.probe_at).toBeNull();
});

test("an answer in between restarts the count", () => {
  expect(failing(1, clear(failing(9), NOW)).probe_at).toBeNull();
  expect(failing(10, clear(failing(9), NOW - 1)).probe_at).toBe(NOW);
});

test("three probes in a row with a fault find it down, half a second and then a second apart", () => {
  const first = settleProbe(failing(10), REFUSED, NOW);
  expect(first).toMatchObject({ down: false, suspicion: { probe_at: NOW + 500 } });
  const second = settleProbe(first.suspicion, REFUSED, NOW + 500);
  expect(second).toMatchObject({ down: false, suspicion: { probe_at: NOW + 1500 } });
  expect(settleProbe(second.suspicion, REFUSED, NOW + 1500).down).toBe(true);
});

test("one probe without any answer finds it down", () => {
  expect(settleProbe(failing(10), { error: "no answer", kind: "silent" }, NOW).down).toBe(true);
});

test("an answered probe, with 429 too, clears the suspicion, and reports are ignored for a second", () => {
  const faulty = settleProbe(failing(10), REFUSED, NOW).suspicion;
  for (const fault of [null, { error: "429", kind: "limited" }] as const) {
    const { suspicion, down } = settleProbe(faulty, fault, NOW);
    expect(down).toBe(false);
    expect(failing(20, suspicion, false, NOW + 999).probe_at).toBeNull();
    expect(failing(10, suspicion, false, NOW + 1000).probe_at).toBe(NOW + 1000);
  }
});

test("a probe that could not be sent proves nothing about the endpoint", () => {
  const { suspicion, down } = settleProbe(failing(10), { error: "no", kind: "unasked" }, NOW);
  expect([down, suspicion.probe_at]).toEqual([false, null]);
});
