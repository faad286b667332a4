/** A call that waits for a replica of its fleet. Pure. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { ModelResponse } from "../../../src/contract/trajectory.ts";
import { newRollout, type Rollout } from "../../../src/core/rollout/rollout.ts";
import type { RolloutSpec } from "../../../src/kernel/messages/wire.ts";
import { afterCall } from "../../../src/kernel/rollout/call-outcome.ts";

const spec = { rollout_id: "ro_1", limits: { max_retries: 1, call_timeout_s: 600 } } as RolloutSpec;
const task = { id: "ro_1", task_key: "k", example_id: 0, task: {}, prompt: [], answer: "", info: {} };
const intent = { keep: 0, append: [], calls: 0, failures: 0, not_before: 0 };
const WAITING: Rollout = { ...newRollout(task, 0), phase: "sample", intent };

function held(rollout: Rollout, at: number, again_at = at): Rollout {
  return afterCall(rollout, { kind: "held", again_at, reason: "all are updating" }, { spec, at, began: at });
}

test("a call waits for its fleet a quarter of an hour in total without using tries; then each wait is a failed try", () => {
  const first = held(WAITING, 1000, 61_000);
  expect(first).toMatchObject({ phase: "sample", failed_calls: [], intent: { failures: 0, calls: 0 } });
  const { not_before = 0 } = first.intent ?? {};
  expect(not_before).toBeGreaterThanOrEqual(61_000);
  expect(not_before).toBeLessThanOrEqual(61_500);
  // The minimum wait is half a second.
  expect(held(first, 61_000).intent?.not_before).toBeGreaterThanOrEqual(61_500);
  const last = 1000 + LIMITS.endpointWaitMs;
  const failed = held(held(first, last - 1), last);
  expect(failed).toMatchObject({ phase: "sample", intent: { failures: 1 } });
  expect(failed.failed_calls).toMatchObject([
    { failure: "provider", message: expect.stringContaining("all are updating") },
  ]);
  expect(held(failed, last + 60_000)).toMatchObject({ phase: "close", failure: "provider" });
});

test("a call waits longer by the time that an update of a replica may take, and repeating it adds no more", () => {
  const wait = (rollout: Rollout, at: number) => {
    const outcome = { kind: "held", again_at: at, reason: "all are updating", update_ms: 1_020_000 } as const;
    return afterCall(rollout, outcome, { spec, at, began: at });
  };
  const last = 1000 + LIMITS.endpointWaitMs + 1_020_000;
  const waited = wait(wait(WAITING, 1000), last - 1);
  expect([waited.failed_calls.length, wait(waited, last).failed_calls.length]).toEqual([0, 1]);
});

test("the platform's time in a turn is the time of its step without the model's", () => {
  const response: ModelResponse = {
    ...{ id: null, model: null, message: { role: "assistant", content: "4" }, finish_reason: "stop", usage: null },
    ...{ prompt_ids: null, completion_ids: null, completion_logprobs: null, policy_version: null, latency_ms: 40 },
  };
  const answered = (at: number) =>
    afterCall(WAITING, { kind: "answered", response }, { spec, at, began: 1000 }).turns[0]?.platform_ms;
  // The two times are rounded separately and may differ.
  expect([answered(1045), answered(1040), answered(1039)]).toEqual([5, 0, 0]);
});
