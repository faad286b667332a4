/**
 * Reads an engine's replies to a probe: what they prove about its logprobs, and why a training run refuses the engine.
 *
 * On a real engine two calls never agree to the last bit, and the tokens at the end of a list may change: so only
 * differences that are large in comparison count.
 */

import * as z from "zod";
import type { EndpointCapabilities, EngineExactness } from "../../contract/endpoint.ts";
import { LIMITS } from "../../contract/limits.ts";
import { Ids, Logprobs, listOf } from "../schema/bounded-lists.ts";

/** A smaller difference between two tokens is not significant. */
const TELLING = 0.02;
/** A token's logprob changed if the difference is larger; rounding to half precision is smaller. */
const APART = 0.25;

/**
 * Compares lists of the same place at full and at half the temperature: `processed` if differences between tokens
 * doubled, `raw` if they stayed. Null if neither can be decided.
 */
export function scaleOf(warm: LikelyTokens, cool: LikelyTokens): "processed" | "raw" | null {
  const common = [...warm].flatMap(([token, logprob]) => {
    const cooled = cool.get(token);
    return cooled === undefined ? [] : [{ logprob, cooled }];
  });
  const [most, least] = [common.at(0), common.at(-1)];
  if (most === undefined || least === undefined) return null;
  const before = most.logprob - least.logprob;
  const after = most.cooled - least.cooled;
  if (before < TELLING) return null;
  return Math.abs(after - 2 * before) < Math.abs(after - before) ? "processed" : "raw";
}

/** Whether two lists of one place cannot be from one distribution; null if one is empty. */
export function differ(one: LikelyTokens, other: LikelyTokens): boolean | null {
  const [likeliest] = one;
  if (likeliest === undefined || other.size === 0) return null;
  const [token, logprob] = likeliest;
  return hasMoved(logprob, other.get(token));
}

/**
 * Whether the engine applies penalties, from lists of one place with no penalty (`neutral`) and with several. False
 * only if a token of the prompt is listed and equally likely under each of them: other tokens only change because the
 * penalised ones do.
 */
export function heedsPenalties(
  neutral: LikelyTokens,
  penalised: readonly LikelyTokens[],
  inPrompt: ReadonlySet<string>,
): boolean | null {
  if (neutral.size === 0 || penalised.some(({ size }) => size === 0)) return null;
  if (penalised.some((list) => differ(neutral, list) === true)) return true;
  const own = [...neutral].filter(([token]) => inPrompt.has(token));
  if (own.length === 0) return null;
  return own.some(([token, logprob]) => penalised.some((list) => hasMoved(logprob, list.get(token))));
}

function hasMoved(logprob: number, again: number | undefined): boolean {
  return again === undefined || Math.abs(again - logprob) > APART;
}

const START_LINE = "docs/vllm.md has the full command line";

/** Why no run may train on the probed endpoint, as a sentence that ends with what to do; null if it may. */
export function whyUntrainable(seen: EndpointCapabilities): string | null {
  const { chat, error, token_ids, logprobs, exactness } = seen;
  if (chat && !(token_ids && logprobs)) {
    const lacking = [...(token_ids ? [] : ["token ids"]), ...(logprobs ? [] : ["logprobs"])];
    return `training needs token ids and logprobs (vLLM returns both), but the probe got no ${lacking.join(" and no ")}`;
  }
  if (exactness == null) {
    return `its logprobs could not be checked (${error ?? "no answer"}): start the server before the run`;
  }
  return inexactness(exactness);
}

function inexactness(exact: EngineExactness): string | null {
  if (exact.refused !== null) {
    return `it rejects a field that training sends (${exact.refused}): if the server does not need the field, set it to null, as in "sampling": {"extra_body": {"cache_salt": null}}`;
  }
  if (!exact.one_logprob_a_token) return "it returns different numbers of logprobs and token ids";
  if (exact.logprobs_mode === "raw") {
    return `its logprobs do not include temperature and penalties: start vLLM with --logprobs-mode processed_logprobs; ${START_LINE}`;
  }
  if (exact.penalties === false) {
    return `it ignores repetition_penalty, so the model's generation config would apply: start vLLM with --generation-config vllm; ${START_LINE}. If there is none, set the field to null: "sampling": {"extra_body": {"repetition_penalty": null}}`;
  }
  return null;
}

// Parsers for the replies to a probe. Lenient: only the fields that are used must have the right shape. Sources:
// OpenAI's models and chat-completion objects; vLLM's protocol for `max_model_len` and `token_ids`.

/** OpenRouter lists several hundred. */
const MODELS_READ = 10_000;
const ModelList = z.object({
  data: listOf(z.object({ id: z.string(), max_model_len: z.int().positive().nullish().catch(null) }), MODELS_READ),
});
/** OpenAI lists at most 20, vLLM as many as it is configured for. */
const LIKELY_READ = 200;
const Likely = z.object({ token: z.string(), logprob: z.number() });
const FirstToken = Likely.extend({ top_logprobs: listOf(Likely, LIKELY_READ).catch([]) });
/** Engines send -9999 for a missing logprob. */
const MISSING = -9000;
const Completion = z.object({
  choices: listOf(
    z.object({
      message: z.object({}),
      logprobs: z.object({ content: Logprobs.nullish() }).nullish().catch(null),
      token_ids: Ids.nullish().catch(null),
    }),
    LIMITS.choicesPerReply,
  ),
  usage: z.object({ completion_tokens: z.int().nonnegative() }).nullish().catch(null),
});

export type ListedModel = z.output<typeof ModelList>["data"][number];

/** Runs cannot use a longer name. */
const MODEL_CHARACTERS = 500;

/** The models that a server lists, without names that runs cannot use; empty if the reply is not a list of models. */
export function listedModels(body: unknown): readonly ListedModel[] {
  const listed = ModelList.safeParse(body).data?.data ?? [];
  return listed.filter(({ id }) => id !== "" && id.length <= MODEL_CHARACTERS);
}

/** Logprobs of the likeliest tokens at one place, the likeliest first. */
export type LikelyTokens = ReadonlyMap<string, number>;

/** The likeliest first tokens of a chat completion; empty if the reply has none. */
export function firstTokens(body: unknown): LikelyTokens {
  const content = Completion.safeParse(body).data?.choices[0]?.logprobs?.content ?? [];
  const first = FirstToken.safeParse(content[0]).data;
  if (first === undefined) return new Map();
  const named = [first, ...first.top_logprobs].filter(({ logprob }) => logprob > MISSING);
  const sorted = named.sort((one, other) => other.logprob - one.logprob);
  return new Map(sorted.map(({ token, logprob }) => [token, logprob]));
}

interface CompletionExtras {
  readonly usage: boolean;
  readonly logprobs: boolean;
  readonly token_ids: boolean;
  readonly one_logprob_a_token: boolean;
}

/** The additional fields of a chat completion; null if the reply is not one. */
export function completionExtras(body: unknown): CompletionExtras | null {
  const completion = Completion.safeParse(body).data;
  const choice = completion?.choices[0];
  if (completion === undefined || choice === undefined) return null;
  const logprobs = choice.logprobs?.content?.length ?? 0;
  const ids = choice.token_ids?.length ?? 0;
  return {
    usage: (completion.usage ?? null) !== null,
    logprobs: logprobs > 0,
    token_ids: ids > 0,
    one_logprob_a_token: logprobs === ids,
  };
}
