/**
 * Asks one judge one question, and turns every result into a value: an answer, or a failure that says whether it may be
 * tried again. A question about likeness (a cosine of two texts) goes to an embedding model, any other to a chat model.
 * `JudgeCache` keeps results that were paid for.
 */

import { AuthenticationError, PermissionDeniedError } from "../../contract/errors.ts";
import { textOf, type Usage } from "../../contract/messages.ts";
import type { Sampling } from "../../contract/sampling.ts";
import { addUsage, type ModelResponse } from "../../contract/trajectory.ts";
import { callBound } from "../../core/costs/call-budget.ts";
import { judgeCosts } from "../../core/costs/run-costs.ts";
import type { Embeddings } from "../../core/rubrics/embeddings.ts";
import { type ReadJudgement, readCosine, readJudgement } from "../../core/rubrics/judgement.ts";
import type { JudgeAsk } from "../../core/rubrics/judges.ts";
import { meanLogprob, type PromptLogprobs } from "../../core/training/reference.ts";
import { sizeOfCall, sizeOfEmbeddings, sizeOfTokens } from "../clients/call-size.ts";
import { callEmbeddings, callModel, callPromptLogprobs } from "../clients/inference.ts";
import type { Connection } from "../clients/outgoing.ts";
import { type CachedJudgement, findJudgements, keepJudgement } from "../db/cached-judgements.ts";
import { databaseOf } from "../db/database.ts";
import { endpointOpener, openEndpoint, reachEndpoint } from "../endpoint/call.ts";
import { idsOf, logError } from "../kit/log.ts";
import { sha256Hex } from "../kit/secrets.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { TurnOutcome } from "../messages/endpoint-wire.ts";
import type { AskOutcome } from "../messages/judge-outcome.ts";
import type { JudgeTarget, RunSpec } from "../messages/wire.ts";
import { chunksOf } from "../run/queues.ts";
import { keptReply } from "./kept-reply.ts";

/** D1 binds at most 100 parameters. */
const KEYS_PER_QUERY = 64;

export interface Addressed {
  readonly ask: JudgeAsk;
  readonly target: JudgeTarget;
}

interface Asking {
  readonly hangUp: AbortSignal;
  readonly connection: Connection;
  /** Gets the logprobs of an ask with tokens: they are not part of the outcome. */
  readonly take: (logprobs: readonly number[]) => void;
}

/**
 * `hangUp`: aborted when the answer is not needed any more. Throws only temporary errors of the platform, such as a
 * database that is down.
 */
export async function askJudge(
  env: Env,
  spec: RunSpec,
  target: JudgeTarget,
  ask: JudgeAsk,
  idempotency_key: string,
  { hangUp, connection, take }: Asking,
): Promise<AskOutcome> {
  // A separate controller: the timeout of this call must not end other calls.
  const controller = new AbortController();
  const stop = () => controller.abort();
  if (hangUp.aborted) stop();
  hangUp.addEventListener("abort", stop, { once: true });
  try {
    return await callJudge(env, spec, target, ask, idempotency_key, { controller, connection, take });
  } finally {
    hangUp.removeEventListener("abort", stop);
  }
}

/** The maximum cost of one call to a judge, in micro-dollars, by the prices of its run. */
export function askBound(spec: RunSpec, ask: JudgeAsk): number {
  const target = spec.judges?.[ask.judge];
  if (target === undefined) return 0;
  if (ask.token_ids !== undefined) return callBound(judgeCosts(spec, ask.judge), sizeOfTokens(ask.token_ids.length));
  const { messages, menu } = ask;
  const call = { model: target.model, messages, tools: [], sampling: asSent({ ...target.sampling, ...ask.sampling }) };
  const size = menu.kind === "cosine" ? sizeOfEmbeddings({ texts: messages.map(textOf) }) : sizeOfCall(call);
  return callBound(judgeCosts(spec, ask.judge), size);
}

async function callJudge(
  env: Env,
  { scope, limits, money }: RunSpec,
  { endpoint_id, model, sampling }: JudgeTarget,
  ask: JudgeAsk,
  idempotency_key: string,
  { take, ...by }: { readonly controller: AbortController } & Pick<Asking, "connection" | "take">,
): Promise<AskOutcome> {
  const { messages, menu, token_ids } = ask;
  const settings = asSent({ ...sampling, ...ask.sampling });
  const seconds = limits.call_timeout_s;
  const address = money?.addresses?.judges[ask.judge];
  const way = {
    open: endpointOpener(env, scope, { endpoint_id, address }, () => Date.now()),
    waitMs: seconds * 1000,
    ...by,
  };
  if (token_ids !== undefined) {
    const call = { model, token_ids, idempotency_key };
    const scored = await reachEndpoint(way, (where) => callPromptLogprobs({ ...call, ...where }));
    return readOutcome(scored, (reply) => readLogprobs(reply, take), seconds);
  }
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

/** As in verifiers: the limit of a judge's reply is sent under the name that reasoning models require. */
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
      return withRefusals(read(outcome.response), outcome);
    case "prompt_too_long":
      return { ...none, error: "the question does not fit the judge's context", retryable: false };
    case "aborted":
      return { ...none, error: `no answer within ${seconds} s`, retryable: true, silent: true, lost: true };
    case "unusable":
      return { ...none, error: outcome.error.message, retryable: false };
    case "failed": {
      const { error, retryable, retry_after_ms, status, free, lost, late, usage = null } = outcome;
      const unauthorized = error.error === AuthenticationError.name;
      const forbidden = error.error === PermissionDeniedError.name;
      const details = {
        ...(status !== undefined && { status }),
        ...(free && { free }),
        ...(lost && { lost }),
        ...(late && { silent: true }),
      };
      const failed = { ...none, ...details, error: error.message, usage, retryable, retry_after_ms };
      return withRefusals({ ...failed, unauthorized, forbidden }, outcome);
    }
  }
}

/** Adds the usage of replies that could not be used, for which the call was repeated at once. Unknown stays unknown. */
function withRefusals<Outcome extends AskOutcome>(
  came: Outcome,
  { refusals = [] }: Pick<TurnOutcome, "refusals">,
): Outcome {
  const used = refusals.flatMap(({ usage }) => (usage === undefined ? [] : [{ usage }]));
  const isUnknown = came.usage === null && (came.kind === "given" || came.lost === true);
  if (used.length === 0 || isUnknown) return came;
  return { ...came, usage: addUsage([...used, { usage: came.usage }]) };
}

function readLogprobs({ logprobs, usage }: PromptLogprobs, take: Asking["take"]): AskOutcome {
  take(logprobs);
  return { kind: "given", value: meanLogprob(logprobs), reason: null, usage };
}

function readVectors({ vectors, usage }: Embeddings): AskOutcome {
  return afterReading(readCosine(vectors), { usage });
}

function readReply({ menu }: JudgeAsk, { message, finish_reason, usage }: ModelResponse): AskOutcome {
  const cut = finish_reason === "length" ? "; it was cut at its token limit" : "";
  const text = textOf(message);
  const read = readJudgement(menu, text);
  return afterReading(read, { usage, cut, reply: keptReply(text, read) });
}

/** A reply without a result costs money all the same. It may be tried again. */
function afterReading(
  read: ReadJudgement,
  {
    usage,
    cut = "",
    reply,
  }: { readonly usage: Usage | null; readonly cut?: string; readonly reply?: string | undefined },
): AskOutcome {
  if (read.ok) return { kind: "given", value: read.value, reason: read.reason, usage, reply };
  const error = `${read.error}${cut}`;
  return { kind: "failed", error, retryable: true, retry_after_ms: null, replied: true, usage, reply };
}

/**
 * Cache of judges' results in D1, so that none is paid for twice. A key contains all that decides a result: the judge's
 * address, model and settings, the whole question with its allowed answers, and its number among repeated questions.
 * The cache may fail: a result that is not found is requested, and a result that could not be stored still counts.
 */
export class JudgeCache {
  readonly #env: Env;
  readonly #spec: RunSpec;
  readonly #subrequests: Subrequests;

  constructor(env: Env, spec: RunSpec, subrequests: Subrequests) {
    this.#env = env;
    this.#spec = spec;
    this.#subrequests = subrequests;
  }

  /** The stored results, by the keys of their questions. */
  async find(addressed: readonly Addressed[]): Promise<ReadonlyMap<string, CachedJudgement>> {
    const found = new Map<string, CachedJudgement>();
    if (this.#spec.judge_cache === false) return found;
    const questions = addressed.filter(({ ask }) => ask.token_ids === undefined);
    try {
      const keyed = await Promise.all(
        questions.map(async (one) => ({ ask: one.ask.key, key: await this.#keyOf(one) })),
      );
      for (const slice of chunksOf(keyed, KEYS_PER_QUERY)) {
        const keys = slice.map(({ key }) => key);
        const rows = await this.#subrequests.inTurn(() =>
          findJudgements(databaseOf(this.#env), this.#spec.scope, keys),
        );
        for (const { ask, key } of slice) {
          const judgement = rows.get(key);
          if (judgement !== undefined) found.set(ask, judgement);
        }
      }
    } catch (thrown) {
      logError("judgements could not be looked up", idsOf(this.#spec), thrown);
    }
    return found;
  }

  async keep(addressed: Addressed, judgement: CachedJudgement): Promise<void> {
    if (this.#spec.judge_cache === false || addressed.ask.token_ids !== undefined) return;
    try {
      const row = { key: await this.#keyOf(addressed), verdict: judgement, created_at: Date.now() };
      await this.#subrequests.inTurn(() => keepJudgement(databaseOf(this.#env), this.#spec.scope, row));
    } catch (thrown) {
      logError("a judgement could not be kept", idsOf(this.#spec), thrown);
    }
  }

  /** Uses the endpoint's address, not its id: an endpoint whose address has changed is another judge. */
  async #keyOf({ ask, target }: Addressed): Promise<string> {
    const { scope } = this.#spec;
    const { base_url } = await openEndpoint(this.#env, scope, target.endpoint_id, Date.now());
    const { messages, menu, pass } = ask;
    const sampling = { ...target.sampling, ...ask.sampling };
    return sha256Hex(JSON.stringify([base_url, target.model, sampling, messages, menu, pass]));
  }
}
