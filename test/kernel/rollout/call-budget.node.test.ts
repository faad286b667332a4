/** The budget of one rollout, by the outcomes of its calls. */
import { expect, test } from "vitest";
import { ModelError, serializeError } from "../../../src/contract/errors.ts";
import type { TurnOutcome } from "../../../src/kernel/messages/endpoint-wire.ts";
import { afterOutcome, openCallBudget, withCall } from "../../../src/kernel/rollout/call-budget.ts";

const BUDGET = { ceiling: 1000, base: 0, prices: { input: 1_000_000, output: 1_000_000, call: 0 } };
const usage = (tokens: number) => ({ prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens });
const error = serializeError(new ModelError("x"));

test("a reply that could not be used, for which the call was repeated at once, counts against the cap", () => {
  const open = withCall(openCallBudget(BUDGET), 100);
  const failed = { kind: "failed", error, retryable: true, retry_after_ms: null } as const;
  const refusals = [
    { error, usage: usage(40) },
    { error, status: 400 },
  ];
  const spentAfter = (outcome: TurnOutcome) => afterOutcome(open, outcome, BUDGET).spent;
  expect(spentAfter({ ...failed, usage: usage(50) })).toBe(50);
  expect(spentAfter({ ...failed, usage: usage(50), refusals })).toBe(90);
  expect(spentAfter({ ...failed, refusals })).toBe(40);
  expect(spentAfter({ ...failed, lost: true, refusals })).toBe(140);
});
