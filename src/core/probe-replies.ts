/**
 * What a probe reads of an endpoint's replies. Lenient: only what is looked for must have its shape. Sources: OpenAI's
 * models and chat-completion objects; vLLM's protocol for `max_model_len` and `token_ids`.
 */
import * as z from "zod";
import { LIMITS } from "../contract/limits.ts";
import { Ids, Logprobs, listOf } from "./schema/bounded-lists.ts";

/** OpenRouter lists some hundreds. */
const MODELS_READ = 10_000;
const ModelList = z.object({
  data: listOf(z.object({ id: z.string(), max_model_len: z.int().positive().nullish().catch(null) }), MODELS_READ),
});
/** OpenAI lists 20 at most, vLLM as many as it was started for. */
const LIKELY_READ = 200;
const Likely = z.object({ token: z.string(), logprob: z.number() });
const FirstToken = Likely.extend({ top_logprobs: listOf(Likely, LIKELY_READ).catch([]) });
/** What engines send for a logprob they do not have is -9999. */
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
  usage: z.object({ completion_tokens: z.int() }).nullish().catch(null),
});

export type ListedModel = z.output<typeof ModelList>["data"][number];

/** A run names no longer ones. */
const MODEL_CHARACTERS = 500;

/** The models a server lists, but for those no run could name; none when the reply is no list of models. */
export function listedModels(body: unknown): readonly ListedModel[] {
  const listed = ModelList.safeParse(body).data?.data ?? [];
  return listed.filter(({ id }) => id !== "" && id.length <= MODEL_CHARACTERS);
}

/** Logprobs by token of the likeliest at one place, the likeliest first. */
export type LikelyTokens = ReadonlyMap<string, number>;

/** Of the first token of a chat completion; empty where the reply names none. */
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

/** What a chat completion came with; null when the reply is none. */
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
