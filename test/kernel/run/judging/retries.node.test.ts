/** How often a judge is called for one judgement. */
import { expect, test } from "vitest";
import { afterOutcome, NEW_JUDGEMENT } from "../../../../src/kernel/run/judging/judgement.ts";
import { RUN_SPEC } from "../../run-rows.ts";

const ASK = { key: "k", judge: "default", pass: 0, rollout_id: null, left_out: 0, seed: null, unit: 1 };
const FAILED = { kind: "failed", error: "x", usage: null, retryable: true, retry_after_ms: null } as const;

test.each([
  ["that failed is called as often as the run says", FAILED, 5, 6],
  ["that did not answer in time is called twice", { ...FAILED, silent: true, lost: true }, 5, 2],
  ["that did not answer in time is not called again without retries", { ...FAILED, silent: true }, 0, 1],
])("a judge %s", (_, outcome, max_retries, calls) => {
  const spec = { ...RUN_SPEC, limits: { call_timeout_s: 600, max_retries } };
  let judgement: Parameters<typeof afterOutcome>[1] = { ...NEW_JUDGEMENT, ...ASK };
  while (judgement.verdict === null) judgement = afterOutcome(spec, judgement, outcome, 0);
  expect(judgement.calls).toBe(calls);
});

test("the last reply of a judge stays with its judgement, also if a later call has no reply", () => {
  const spec = { ...RUN_SPEC, limits: { call_timeout_s: 600, max_retries: 2 } };
  const refused = { ...FAILED, replied: true, reply: "I cannot judge this." };
  const given = { kind: "given", value: "good", reason: "because", usage: null } as const;
  const first = afterOutcome(spec, { ...NEW_JUDGEMENT, ...ASK }, refused, 0);
  expect([first.verdict, first.reply]).toEqual([null, "I cannot judge this."]);
  const second = afterOutcome(spec, first, FAILED, 0);
  const failed = afterOutcome(spec, second, FAILED, 0);
  expect([failed.verdict, failed.reply]).toEqual([expect.any(String), "I cannot judge this."]);
  expect(afterOutcome(spec, second, { ...given, reply: "Good, because." }, 0).reply).toBe("Good, because.");
  expect(afterOutcome(spec, second, given, 0).reply).toBeNull();
});

test("a blank reply does not leave the reply of an earlier call with the judgement", () => {
  const spec = { ...RUN_SPEC, limits: { call_timeout_s: 600, max_retries: 1 } };
  const refused = { ...FAILED, replied: true, reply: "I cannot judge this." };
  const first = afterOutcome(spec, { ...NEW_JUDGEMENT, ...ASK }, refused, 0);
  const blank = { ...FAILED, replied: true, reply: undefined, error: "the reply is empty" };
  const second = afterOutcome(spec, first, blank, 0);
  expect([second.verdict, second.reply]).toEqual([expect.stringContaining("the reply is empty"), null]);
});
