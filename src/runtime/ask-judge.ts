/** One call of a judge, wherever it is awaited: called within its time, its reply read, and what came of it made plain. */
import { textOf } from "../core/messages.ts";
import type { JudgeAsk } from "../core/rubrics/judges.ts";
import { readVerdict } from "../core/rubrics/verdict.ts";
import type { Sampling } from "../core/sampling.ts";
import type { ModelResponse } from "../core/trajectory.ts";
import type { TurnOutcome } from "./call-outcome.ts";
import { callEndpoint, endpointOpener } from "./endpoint-call.ts";
import type { AskOutcome } from "./judge-outcome.ts";
import type { JudgeTarget, RunSpec } from "./wire.ts";

/** Throws only what passes and is the platform's own, such as a database that is down. */
export async function askJudge(
  env: Env,
  { scope, limits }: RunSpec,
  { endpoint_id, model, sampling }: JudgeTarget,
  ask: JudgeAsk,
  idempotency_key: string,
): Promise<AskOutcome> {
  const { messages } = ask;
  const call = { model, messages, tools: [], sampling: asSent({ ...sampling, ...ask.sampling }) };
  const outcome = await callEndpoint({
    open: endpointOpener(env, scope, endpoint_id, () => Date.now()),
    call: () => ({ ...call, idempotency_key }),
    waitMs: limits.call_timeout_s * 1000,
    controller: new AbortController(),
  });
  return readOutcome(ask, outcome, limits.call_timeout_s);
}

/** As in verifiers: the limit of a judge's reply goes by the name that models which reason want. */
function asSent({ max_tokens, ...sampling }: Sampling): Sampling {
  return max_tokens == null ? sampling : { max_completion_tokens: max_tokens, ...sampling };
}

function readOutcome(ask: JudgeAsk, outcome: TurnOutcome, seconds: number): AskOutcome {
  const none = { kind: "failed", usage: null, retry_after_ms: null } as const;
  switch (outcome.kind) {
    case "answered":
      return readReply(ask, outcome.response);
    case "prompt_too_long":
      return { ...none, error: "the question does not fit the judge's context", retryable: false };
    case "aborted":
      return { ...none, error: `no answer within ${seconds} s`, retryable: true };
    case "unusable":
      return { ...none, error: outcome.error.message, retryable: false };
    case "failed": {
      const { error, retryable, retry_after_ms, status, free } = outcome;
      const unauthorized = error.error === "AuthenticationError";
      const told = { ...(status !== undefined && { status }), ...(free && { free }) };
      return { ...none, ...told, error: error.message, retryable, retry_after_ms, unauthorized };
    }
  }
}

/** A reply without a verdict cost what it cost, and may be better when it is asked for again. */
function readReply(
  { menu }: JudgeAsk,
  { message, finish_reason, usage }: ModelResponse,
): AskOutcome {
  const read = readVerdict(menu, textOf(message));
  if (read.ok) return { kind: "given", value: read.value, reason: read.reason, usage };
  const cut = finish_reason === "length" ? "; it was cut at its token limit" : "";
  const error = `${read.error}${cut}`;
  return { kind: "failed", error, retryable: true, retry_after_ms: null, replied: true, usage };
}
