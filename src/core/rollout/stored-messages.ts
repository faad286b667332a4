/**
 * The messages that an agent sends back, as they are stored, and the earlier conversation that they continue: then a
 * history that is the same is stored once.
 */
import { canonicalJson, findOddity, isRecord, type Json } from "../../contract/json.ts";
import { type Content, type Message, type Messages, publicMessage, type ToolCall } from "../../contract/messages.ts";
import { continuedBy, promptOf, type StoredPrompt, type Turn } from "../../contract/trajectory.ts";

type Spoken = Pick<Turn, "prompt" | "completion">;

export interface AskedPrompt {
  /** The whole prompt. */
  readonly prompt: Messages;
  /** The turn whose conversation has the longest beginning in common with it. */
  readonly continues: Omit<StoredPrompt, "append">;
}

/**
 * The prompt of a call, with the messages of the model as they are stored. An agent does not return what only its
 * model's server needs, such as signatures, and some agents write the arguments of tool calls as JSON again, with other
 * spaces.
 */
export function storedPrompt(messages: Messages, turns: readonly Spoken[]): AskedPrompt {
  const { after, keep } = longestShared(messages, turns);
  const rest = messages.slice(keep);
  const prompt = [...promptOf(turns, after + 1, { after, keep, append: [] }), ...asSaid(rest, turns)];
  return { prompt, continues: after === turns.length - 1 ? { keep } : { after, keep } };
}

/**
 * The turn whose conversation begins with most of `messages`, and how many they are. Of several it is one that continues
 * without a message in between, then the latest.
 *
 * Each conversation is compared only beyond what it shares with the one that it continues, and as every turn continued
 * the longest beginning that it could, no two go on with the same message, except for equal answers to the same prompt.
 * So a call compares each of its messages once, and at most two more messages for each turn. A message that is compared
 * with those of several turns is read as a whole only once.
 */
function longestShared(
  messages: Messages,
  turns: readonly Spoken[],
): { readonly after: number; readonly keep: number } {
  const shared: number[] = [];
  const texts: Texts = new Map();
  let best = { after: turns.length - 1, keep: 0, isWhole: false };
  for (const [index, { prompt, completion }] of turns.entries()) {
    const { keep, append } = prompt;
    const before = shared[continuedBy(index, prompt)] ?? 0;
    const own = before < keep ? 0 : sharedWith(messages, keep, [...append, completion], texts);
    const count = before < keep ? before : keep + own;
    shared.push(count);
    const isWhole = own === append.length + 1;
    if (count > best.keep || (count === best.keep && count > 0 && (isWhole || !best.isWhole))) {
      best = { after: index, keep: count, isWhole };
    }
  }
  return best;
}

/** How many of `stored` are the messages from `from` on. */
function sharedWith(messages: Messages, from: number, stored: Messages, texts: Texts): number {
  let shared = 0;
  for (;;) {
    const [given, known] = [messages[from + shared], stored[shared]];
    if (given === undefined || known === undefined || !isSameText(known, given, texts)) return shared;
    shared += 1;
  }
}

/** Messages of the model that an agent moved to another place are the stored ones, too. */
function asSaid(messages: Messages, turns: readonly Spoken[]): Messages {
  if (messages.every(({ role }) => role !== "assistant")) return messages;
  const said = new Map(turns.map(({ completion }) => [textKey(completion), completion]));
  return messages.map((message) => (message.role === "assistant" ? (said.get(textKey(message)) ?? message) : message));
}

/** Texts of parts of the sent messages, each made once: a large part may be compared with those of many turns. */
type Texts = Map<object, string>;

function textOnce<Part extends object>(texts: Texts, part: Part, make: (part: Part) => string): string {
  const text = texts.get(part) ?? make(part);
  texts.set(part, text);
  return text;
}

/** Whether an agent sends back this message. The arguments of tool calls are parsed only if their texts differ. */
function isSameText(stored: Message, given: Message, texts: Texts): boolean {
  if (stored === given) return true;
  if (stored.role !== given.role || !isSameContent(contentOf(stored), contentOf(given), texts)) return false;
  if (stored.role !== "assistant") return restOf(stored) === textOnce(texts, given, restOf);
  const [known, sent] = [stored.tool_calls ?? [], given.tool_calls ?? []];
  return known.length === sent.length && known.every((call, at) => isSameCall(call, sent[at], texts));
}

function restOf(message: Message): string {
  return JSON.stringify({ ...message, content: null });
}

function isSameContent(stored: Content, given: Content, texts: Texts): boolean {
  if (stored === given) return true;
  if (!Array.isArray(stored) || !Array.isArray(given)) return false;
  return JSON.stringify(stored) === textOnce(texts, given, JSON.stringify);
}

function isSameCall({ id, function: known }: ToolCall, given: ToolCall | undefined, texts: Texts): boolean {
  if (given === undefined || given.id !== id || given.function.name !== known.name) return false;
  if (given.function.arguments === known.arguments) return true;
  return textOnce(texts, given.function, argumentsOf) === argumentsOf(known);
}

function argumentsOf(called: ToolCall["function"]): string {
  return sameArguments(called.arguments);
}

/** The parts of a model's message that every agent returns. */
function textKey(message: Message): string {
  return JSON.stringify([contentOf(message), (publicMessage(message).tool_calls ?? []).map(callKey)]);
}

/** Agents leave out an empty text of the model, or make it null. */
function contentOf({ role, content }: Message): Content {
  return role === "assistant" && content === "" ? null : content;
}

function callKey({ function: called, ...call }: ToolCall): unknown {
  return { ...call, function: { ...called, arguments: argumentsOf(called) } };
}

/** Equal for all texts of the same JSON object. Another text is compared as it is. */
function sameArguments(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && findOddity(value as Json, "") === null ? canonicalJson(value as Json) : text;
  } catch (thrown) {
    if (thrown instanceof SyntaxError || thrown instanceof RangeError) return text;
    throw thrown;
  }
}
