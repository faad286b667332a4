/**
 * What a probe reads of an endpoint's replies. Lenient: only what is looked for must have its shape. Sources: OpenAI's
 * models and chat-completion objects; vLLM's protocol for `max_model_len` and `token_ids`.
 */
import * as z from "zod";
import { Ids, Logprobs, listOf } from "./bounded-lists.ts";
import { LIMITS } from "./limits.ts";

/** OpenRouter lists some hundreds. */
const MODELS_READ = 10_000;
const ModelList = z.object({
  data: listOf(
    z.object({ id: z.string(), max_model_len: z.int().positive().nullish().catch(null) }),
    MODELS_READ,
  ),
});
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

/** What a chat completion came with; null when the reply is none. */
export function completionExtras(
  body: unknown,
): { usage: boolean; logprobs: boolean; token_ids: boolean } | null {
  const completion = Completion.safeParse(body).data;
  const choice = completion?.choices[0];
  if (completion === undefined || choice === undefined) return null;
  return {
    usage: (completion.usage ?? null) !== null,
    logprobs: (choice.logprobs?.content ?? []).length > 0,
    token_ids: (choice.token_ids ?? []).length > 0,
  };
}
