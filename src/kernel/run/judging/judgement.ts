/**
 * Applies the outcome of one call to one judgement: settled, or to be tried again after a wait, and its cost. Pure.
 *
 * Invariant. Only this file decides how often a judge is called for a judgement, and after which wait.
 */
import { LIMITS } from "../../../contract/limits.ts";
import type { JudgeResult } from "../../../core/rubrics/judges.ts";
import type { Met } from "../../endpoint/run-lease.ts";
import { backoffMs } from "../../kit/backoff.ts";
import type { AskOutcome, KnownResult, ReportedOutcome } from "../../messages/judge-outcome.ts";
import type { RunSpec } from "../../messages/wire.ts";
import type { JudgementEntry } from "../judging-store.ts";

/**
 * True if the call with this outcome is recorded already: the report is repeated, or another claim made the same call
 * and reported first. A call keeps its key until it has a reply, so it has at most one reply. Two calls without a reply
 * that were made from the same record count as one try.
 */
export function isCounted(before: JudgementEntry, outcome: ReportedOutcome): boolean {
  if (outcome.recorded === undefined) return false;
  const { calls, replies } = outcome.recorded;
  return hasReply(outcome) ? replies !== before.replies : calls !== before.calls;
}

export const NEW_JUDGEMENT = {
  cached: 0,
  tries: 0,
  replies: 0,
  next_at: 0,
  verdict: null,
  reply: null,
  calls: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cached_tokens: 0,
  unmetered: 0,
};

/** The judgement after this outcome: settled, or to be tried again after a wait. */
export function afterOutcome(
  { run_id, limits }: RunSpec,
  before: JudgementEntry,
  outcome: AskOutcome,
  now: number,
): JudgementEntry {
  const asked = outcome.kind === "failed" || outcome.cached !== true;
  const spent = {
    ...before,
    calls: before.calls + (asked ? 1 : 0),
    prompt_tokens: before.prompt_tokens + (outcome.usage?.prompt_tokens ?? 0),
    completion_tokens: before.completion_tokens + (outcome.usage?.completion_tokens ?? 0),
    cached_tokens: before.cached_tokens + (outcome.usage?.cached_tokens ?? 0),
    unmetered: before.unmetered + (isUnmetered(outcome) ? 1 : 0),
  };
  if (outcome.kind === "given") {
    const { value, reason, reply = null } = outcome;
    return { ...spent, verdict: resultText({ value, reason }), reply, cached: asked ? 0 : 1 };
  }
  const { error, retryable, free = false, silent = false, retry_after_ms } = outcome;
  if (free) return { ...spent, next_at: now };
  const tries = before.tries + 1;
  const replies = before.replies + (outcome.replied ? 1 : 0);
  const reply = lastReply(before, outcome);
  const retries = silent ? Math.min(limits.max_retries, LIMITS.retriesAfterTimeout) : limits.max_retries;
  if (!retryable || before.tries >= retries) {
    return { ...spent, tries, replies, reply, verdict: resultText({ value: null, error, retryable }) };
  }
  const seed = `${run_id}:${before.unit}:${before.key}`;
  return { ...spent, tries, replies, reply, next_at: now + backoffMs(before.tries, retry_after_ms, seed) };
}

/** Null after a blank reply, which is not stored: the reply of an earlier call does not belong to its error. */
function lastReply(before: JudgementEntry, { replied, reply }: Extract<AskOutcome, { kind: "failed" }>): string | null {
  return replied ? (reply ?? null) : before.reply;
}

/** True if there was a reply without usage. */
function isUnmetered(outcome: AskOutcome): boolean {
  return hasReply(outcome) && outcome.usage === null;
}

/** True if the endpoint replied, with a judgement or not. */
export function hasReply(outcome: AskOutcome): boolean {
  return outcome.kind === "given" ? outcome.cached !== true : outcome.replied === true;
}

function resultText(judgement: JudgeResult): string {
  return JSON.stringify(judgement);
}

/** What the outcome says about the judge's endpoint. An endpoint with any reply counts as available. */
export function metBy(outcome: AskOutcome, { verdict: judgement }: JudgementEntry): Met {
  if (outcome.kind === "given") {
    const turns = outcome.cached ? 0 : 1;
    return { failure: null, error: null, turns, calls: turns };
  }
  const { error: message, retryable, status, replied } = outcome;
  const met = { calls: 1, limited: status === 429 ? 1 : 0 };
  if (replied) return { ...met, failure: null, error: null, turns: 1 };
  const failure = judgement !== null && retryable ? "provider" : null;
  return { ...met, failure, error: { message, retryable }, turns: 0 };
}

export function knownResult({ key, verdict: judgement }: JudgementEntry): KnownResult[] {
  return judgement === null ? [] : [[key, JSON.parse(judgement) as JudgeResult]];
}
