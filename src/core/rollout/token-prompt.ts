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
 * An answer with tool calls has other arguments in the two renderings, so the part that both end with begins behind the
 * arguments of the last call, and the template ends the answer at the first id there that ended the sampled one. A
 * fourth rendering, in which the first new message has another text, must be the same up to that id: it is not one of
 * the new messages.
 *
 * Otherwise the prompt is sent as messages, and the cause is stored with the turn. Pure.
 */
import type { Message, Messages } from "../../contract/messages.ts";
import type { MessagesCause, TokenForm, TokenPrompt } from "../../contract/prompts.ts";
import type { Turn } from "../../contract/trajectory.ts";
import type { Rollout } from "./rollout.ts";
import { base64OfInt32s, int32s } from "./tokens.ts";

/** The conversations to render. All but `before` end where the next answer begins. */
export interface Renderings<Rendered> {
  /** The messages before the last answer, without the beginning of an answer. */
  readonly before: Rendered;
  /** The whole prompt, with one or another word as the last answer. */
  readonly one: Rendered;
  readonly other: Rendered;
  /** If the last answer has tool calls: `one` with another text in the first new message. */
  readonly changed?: Rendered;
}

const [ONE_WORD, OTHER_WORD] = ["Yes", "No"];

/** Names of functions that contain no text of a special token. */
const PLAIN_NAME = /^[\w.-]{1,64}$/;

/**
 * The conversations whose renderings show what follows the last answer, or why the prompt is sent as messages.
 * `form`: only the server of `chat_token_ids` parses tool calls and reasoning.
 */
export function conversationsToRender(
  rollout: Rollout,
  prompt: Messages,
  offersTools: boolean,
  form: TokenForm,
): Renderings<Messages> | { readonly messages: MessagesCause } {
  const { intent, turns } = rollout;
  const last = turns.at(-1);
  if (intent === null || last === undefined) return { messages: "rewritten" };
  const length = last.prompt.keep + last.prompt.append.length + 1;
  if (intent.after !== undefined || intent.keep !== length) return { messages: "rewritten" };
  const cause = causeIn(prompt, offersTools, form) ?? causeOf(rollout, last);
  if (cause !== null) return { messages: cause };
  const before = prompt.slice(0, length - 1).map((message) => withAnswer(message, ONE_WORD));
  const [first, ...others] = prompt.slice(length);
  const after = first === undefined ? [] : [first, ...others];
  const whole = (word: string): Messages => [...before, withAnswer(last.completion, word), ...after];
  const conversations = { before, one: whole(ONE_WORD), other: whole(OTHER_WORD) };
  if ((last.completion.tool_calls ?? []).length === 0) return conversations;
  if (first === undefined) return { messages: "tools" };
  const content = first.content === ONE_WORD ? OTHER_WORD : ONE_WORD;
  return { ...conversations, changed: [...conversations.one.slice(0, length), { ...first, content }, ...others] };
}

function causeIn(prompt: Messages, offersTools: boolean, form: TokenForm): MessagesCause | null {
  const parsed = form === "chat_token_ids";
  if (parsed ? !prompt.every(hasPlainCalls) : offersTools || prompt.some(hasCalls)) return "tools";
  if (prompt.some(({ content }) => Array.isArray(content) && content.some(({ type }) => type !== "text"))) {
    return "media";
  }
  return !parsed && prompt.some(hasThoughts) ? "reasoning" : null;
}

function causeOf({ last_ids, forked_from }: Rollout, last: Turn): MessagesCause | null {
  if (forked_from !== undefined && last.index <= forked_from.turn) return "inherited";
  if (last.tokens === null || last_ids.length === 0) return "no_token_ids";
  return last.is_truncated ? "cut_answer" : null;
}

/**
 * The ids that follow the last answer. `lastIds`: those of the last turn's prompt and answer, which end with the id
 * that ended the answer.
 */
export function idsAfterAnswer(
  lastIds: readonly number[],
  { before, one, other, changed }: Renderings<readonly number[]>,
): readonly number[] | MessagesCause {
  const alike = commonEnd(one, other);
  const [start, otherStart] = [one.length - alike, other.length - alike];
  const isStable = beginsWith(one, before) && beginsWith(other, before);
  if (!isStable || start <= before.length || otherStart <= before.length) return "template";
  const ended = lastIds.at(-1) ?? -1;
  const end = changed === undefined ? start : one.indexOf(ended, start);
  if (one[end] !== ended) return "answer_end";
  if (changed !== undefined && !beginsWith(changed, one.slice(0, end + 1))) return "answer_end";
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

/** An answer with a word in place of its text, and of the arguments of its calls. Any other message is unchanged. */
function withAnswer(message: Message, word: string): Message {
  const { role, tool_calls = [] } = message;
  if (role !== "assistant") return message;
  const args = JSON.stringify({ text: word });
  const calls = tool_calls.map(({ id, type, function: { name } }) => ({
    id,
    type,
    function: { name, arguments: args },
  }));
  return { role, content: word, ...(calls.length > 0 && { tool_calls: calls }) };
}

function hasPlainCalls({ tool_calls = [] }: Message): boolean {
  return tool_calls.every(({ function: { name } }) => PLAIN_NAME.test(name));
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
