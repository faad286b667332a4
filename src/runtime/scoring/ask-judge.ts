/**
 * One call of a judge, wherever it is awaited: called within its time, its reply read, and what came of it made plain. What
 * is asked says of which kind the call is: a cosine is asked of an embedding model, all else is a question.
 */

import { callEmbeddings, callModel } from "../../clients/inference.ts";
import { textOf, type Usage } from "../../contract/messages.ts";
import type { Sampling } from "../../contract/sampling.ts";
import type { ModelResponse } from "../../contract/trajectory.ts";
import type { Embeddings } from "../../core/rubrics/embeddings.ts";
import type { JudgeAsk } from "../../core/rubrics/judges.ts";
import { type ReadVerdict, readCosine, readVerdict } from "../../core/rubrics/verdict.ts";
import type { TurnOutcome } from "../contract/endpoint-wire.ts";
import type { AskOutcome } from "../contract/judge-outcome.ts";
import type { JudgeTarget, RunSpec } from "../contract/wire.ts";
import { endpointOpener, reachEndpoint } from "../endpoint/call.ts";

/** Throws only what passes and is the platform's own, such as a database that is down. */
export async function askJudge(
  env: Env,
  { scope, limits }: RunSpec,
  { endpoint_id, model, sampling }: JudgeTarget,
  ask: JudgeAsk,
  idempotency_key: string,
): Promise<AskOutcome> {
  const { messages, menu } = ask;
  const settings = asSent({ ...sampling, ...ask.sampling });
  const seconds = limits.call_timeout_s;
  const way = {
    open: endpointOpener(env, scope, endpoint_id, () => Date.now()),
    waitMs: seconds * 1000,
    controller: new AbortController(),
  };
  if (menu.kind === "cosine") {
    const { extra_body } = settings;
    const call = { model, texts: messages.map(textOf), extra_body, idempotency_key };
    const compared = await reachEndpoint(way, (where) => callEmbeddings({ ...call, ...where }));
    return readOutcome(compared, readVectors, seconds);
  }
  const call = { model, messages, tools: [], sampling: settings, idempotency_key };
  const answered = await reachEndpoint(way, (where) => callModel({ ...call, ...where }));
  return readOutcome(answered, (response) => readReply(ask, response), seconds);
}

/** As in verifiers: the limit of a judge's reply goes by the name that models which reason want. */
function asSent({ max_tokens, ...sampling }: Sampling): Sampling {
  return max_tokens == null ? sampling : { max_completion_tokens: max_tokens, ...sampling };
}

function readOutcome<Response>(
  outcome: TurnOutcome<Response>,
  read: (response: Response) => AskOutcome,
  seconds: number,
): AskOutcome {
  const none = { kind: "failed", usage: null, retry_after_ms: null } as const;
  switch (outcome.kind) {
    case "answered":
      return read(outcome.response);
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

function readVectors({ vectors, usage }: Embeddings): AskOutcome {
  return afterReading(readCosine(vectors), usage);
}

function readReply({ menu }: JudgeAsk, { message, finish_reason, usage }: ModelResponse): AskOutcome {
  const cut = finish_reason === "length" ? "; it was cut at its token limit" : "";
  return afterReading(readVerdict(menu, textOf(message)), usage, cut);
}

/** A reply without a verdict cost what it cost, and may be better when it is asked for again. */
function afterReading(read: ReadVerdict, usage: Usage | null, cut = ""): AskOutcome {
  if (read.ok) return { kind: "given", value: read.value, reason: read.reason, usage };
  const error = `${read.error}${cut}`;
  return { kind: "failed", error, retryable: true, retry_after_ms: null, replied: true, usage };
}
