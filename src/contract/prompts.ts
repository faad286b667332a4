/** How a run's prompts are sent: as messages, or as the token ids that the engine already has. */
import * as z from "zod";
import type { Sampling } from "./sampling.ts";

export const PromptForm = z
  .enum(["messages", "token_ids", "chat_token_ids"])
  .describe(
    "token_ids: from its second turn on, a rollout's prompt is the token ids of the turn before plus those of the new messages, so that turns stay one sample; chat_token_ids: the same at /v1/chat/completions/tokens, whose server also parses tool calls and reasoning",
  );
export type PromptForm = z.infer<typeof PromptForm>;
export type TokenForm = Exclude<PromptForm, "messages">;

/** Why a turn's prompt was sent as messages in a run whose prompts are token ids. */
export const MESSAGES_CAUSES = [
  /** Tools or calls, which engines parse only out of chat completions; or calls of names that are no identifiers. */
  "tools",
  /** The engine parses reasoning out of chat completions, and only there. */
  "reasoning",
  /** A picture or a sound has no ids that could be sent. */
  "media",
  /** The prompt is not the last conversation with new messages after it. */
  "rewritten",
  /** The last turn was sampled in another run, perhaps by another model. */
  "inherited",
  /** The engine sent no ids with the last turn. */
  "no_token_ids",
  /** The last answer reached a token limit, or its ids were cut. */
  "cut_answer",
  /** The last answer ended with another id than the one with which the chat template ends an answer. */
  "answer_end",
  /** The chat template renders earlier messages differently once others follow. */
  "template",
  /** The server refused to tokenise the messages. */
  "tokenize_refused",
] as const;
export type MessagesCause = (typeof MESSAGES_CAUSES)[number];

/** How the prompt of an outstanding call is sent. It is stored before the call, and is the same for every repeat. */
export type TokenPrompt =
  | {
      /** int32 ids in base64: those after the ids of the last turn. */
      readonly suffix_ids: string;
      /** The longest sequence of the model, as the server reports it; null if it does not. */
      readonly max_model_len: number | null;
    }
  | { readonly messages: MessagesCause };

/** The form of one turn's prompt. Stored with the turn. */
export type SentPrompt = "token_ids" | MessagesCause;

/** Fields of `extra_body` that change what a chat template makes of messages, and that `/tokenize` does not take. */
const UNRENDERED = ["documents", "add_generation_prompt", "continue_final_message", "mm_processor_kwargs"];
/** Fields that a completion of token ids reads differently, or that change its prompt. */
const OTHERWISE = ["prompt", "suffix", "echo", "truncate_prompt_tokens", "prompt_embeds", "best_of", "response_format"];

/**
 * The first field that cannot be combined with prompts of token ids; null if there is none. `sampling`: of the run and
 * of the environment together.
 */
export function unfitForTokenIds({ reasoning_effort, extra_body }: Sampling): string | null {
  if ((reasoning_effort ?? null) !== null) return "sampling.reasoning_effort";
  const given = Object.entries(extra_body ?? {}).filter(([, value]) => value !== null);
  const unfit = given.find(([name]) => UNRENDERED.includes(name) || OTHERWISE.includes(name));
  return unfit === undefined ? null : `sampling.extra_body.${unfit[0]}`;
}
