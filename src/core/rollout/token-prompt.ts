/**
 * Builds the prompt of a later turn from token ids: the ids of the turn before (its prompt, then its answer), and the
 * ids that the chat template puts after an answer, up to the next one. Then the turns of a rollout are one sequence of
 * ids, also if the template drops reasoning from earlier answers, or the tokenizer would split an answer differently.
 *
 * The template is in the server. It is asked to render three conversations in which every earlier answer is replaced
 * by a short word: the conversation before the last answer, and twice the whole prompt, with two different words as
 * the last answer. The ids are used only if both of these hold:
 *
 * - Both renderings of the prompt begin with the rendering of the conversation before the answer. So the template does
 *   not change what it rendered before, such as a system message that it moves to the last question.
 * - The part that both renderings end with begins behind the answer, since the two words differ, and its first id is
 *   the last id of the answer that was sampled. So the answer ended as the template ends one, and what follows is what
 *   the template adds, whatever the answer was.
 *
 * Otherwise the prompt is sent as messages, and the cause is stored with the turn. Pure.
 */
import type { Message, Messages } from "../../contract/messages.ts";
import type { MessagesCause, TokenPrompt } from "../../contract/prompts.ts";
import type { Rollout } from "./rollout.ts";
import { base64OfInt32s, int32s } from "./tokens.ts";

/** The conversations to render. All but `before` end where the next answer begins. */
export interface Renderings<Rendered> {
  /** The messages before the last answer, without the beginning of an answer. */
  readonly before: Rendered;
  /** The whole prompt, with one or another word as the last answer. */
  readonly one: Rendered;
  readonly other: Rendered;
}

const [ONE_WORD, OTHER_WORD] = ["Yes", "No"];

/** The conversations whose renderings show what follows the last answer, or why the prompt is sent as messages. */
export function conversationsToRender(
  rollout: Rollout,
  prompt: Messages,
  offersTools: boolean,
): Renderings<Messages> | { readonly messages: MessagesCause } {
  const { intent, turns, last_ids, forked_from } = rollout;
  const last = turns.at(-1);
  if (intent === null || last === undefined) return { messages: "rewritten" };
  const length = last.prompt.keep + last.prompt.append.length + 1;
  if (intent.after !== undefined || intent.keep !== length) return { messages: "rewritten" };
  if (offersTools || prompt.some(hasCalls)) return { messages: "tools" };
  if (prompt.some(({ content }) => Array.isArray(content) && content.some(({ type }) => type !== "text"))) {
    return { messages: "media" };
  }
  if (prompt.some(hasThoughts)) return { messages: "reasoning" };
  if (forked_from !== undefined && last.index <= forked_from.turn) return { messages: "inherited" };
  if (last.tokens === null || last_ids.length === 0) return { messages: "no_token_ids" };
  if (last.is_truncated) return { messages: "cut_answer" };
  const before = prompt.slice(0, length - 1).map(withoutAnswer);
  const after = prompt.slice(length);
  const whole = (content: string): Messages => [...before, { role: "assistant", content }, ...after];
  return { before, one: whole(ONE_WORD), other: whole(OTHER_WORD) };
}

/**
 * The ids that follow the last answer. `lastIds`: those of the last turn's prompt and answer, which end with the id
 * that ended the answer.
 */
export function idsAfterAnswer(
  lastIds: readonly number[],
  { before, one, other }: Renderings<readonly number[]>,
): readonly number[] | MessagesCause {
  const alike = commonEnd(one, other);
  const [end, otherEnd] = [one.length - alike, other.length - alike];
  const isStable = beginsWith(one, before) && beginsWith(other, before);
  if (!isStable || end <= before.length || otherEnd <= before.length) return "template";
  if (one[end] !== lastIds.at(-1)) return "answer_end";
  return one.slice(end + 1);
}

export function tokenPromptOf(suffix: readonly number[], max_model_len: number | null): TokenPrompt {
  return { suffix_ids: base64OfInt32s(suffix), max_model_len };
}

/** The ids of the outstanding prompt; null if it is sent as messages. */
export function promptIdsOf({ intent, last_ids }: Pick<Rollout, "intent" | "last_ids">): readonly number[] | null {
  const sent = intent?.token_prompt;
  return sent === undefined || "messages" in sent ? null : [...last_ids, ...int32s(sent.suffix_ids)];
}

function withoutAnswer(message: Message): Message {
  return message.role === "assistant" ? { role: "assistant", content: ONE_WORD } : message;
}

function hasCalls({ role, tool_calls = [] }: Message): boolean {
  return role === "tool" || tool_calls.length > 0;
}

function hasThoughts({ reasoning_content = "", thinking_blocks = [] }: Message): boolean {
  return reasoning_content !== "" || thinking_blocks.length > 0;
}

function beginsWith(ids: readonly number[], beginning: readonly number[]): boolean {
  return beginning.length <= ids.length && beginning.every((id, at) => id === ids[at]);
}

/** The number of ids that both end with. */
function commonEnd(one: readonly number[], other: readonly number[]): number {
  const most = Math.min(one.length, other.length);
  let count = 0;
  while (count < most && one[one.length - 1 - count] === other[other.length - 1 - count]) count += 1;
  return count;
}
