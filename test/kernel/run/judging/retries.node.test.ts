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
