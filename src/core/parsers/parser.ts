/**
 * Finds the answer in the model's replies, and scores their format.
 *
 * Invariants of every parser. Of a list of messages only the assistant's count, and a reply without content is "". A
 * string may have an answer, but has no messages whose format could be scored. Parsing takes time linear in the text:
 * models write hostile text by accident.
 */
import { type Messages, textOf } from "../../contract/messages.ts";

/** Extracts the answer from a text; null if there is none. */
export type Extract = (text: string) => string | null;

export class Parser {
  readonly #extract: Extract;

  /** Without `extract` the whole reply is the answer. */
  constructor(extract: Extract = (text) => text) {
    this.#extract = extract;
  }

  /** The parsed form of one text: here the answer, in some subclasses more. */
  parse(text: string): unknown {
    return this.#extract(text);
  }

  /** The answer in the last reply; null if there is no reply or it has no answer. */
  parseAnswer(completion: Messages | string): string | null {
    const text = typeof completion === "string" ? completion : assistantTexts(completion).at(-1);
    return text === undefined ? null : this.#extract(text);
  }

  /** How well the replies have the expected format, from 0 to 1. This parser accepts any format. */
  formatReward(_completion: Messages | string): number {
    return 1;
  }
}

/** The text of each of the assistant's messages, in order. */
export function assistantTexts(completion: Messages): string[] {
  return completion.filter((message) => message.role === "assistant").map(textOf);
}

/** The mean of `score` over the assistant's messages; 0 if there are none, also for a string (verifiers' rule). */
export function meanOverReplies(completion: Messages | string, score: (text: string) => number): number {
  const texts = typeof completion === "string" ? [] : assistantTexts(completion);
  if (texts.length === 0) return 0;
  return texts.reduce((sum, text) => sum + score(text), 0) / texts.length;
}

/** The text between the first `####` and the next one (or the end), trimmed. Without `####`: the whole text. */
export function extractHashAnswer(text: string): string {
  return text.split("####", 2)[1]?.trim() ?? text;
}

/** Replies that begin with reasoning: `<think>…</think>`, then the answer. */
const OPEN = "<think>";
const CLOSE = "</think>";

/** The answer is the text after the last `</think>`, trimmed; "" if `</think>` is missing. */
export class ThinkParser extends Parser {
  constructor(extract: Extract = (text) => text) {
    super((text) => extract(afterThinking(text) ?? ""));
  }

  /**
   * The fraction of replies in the format: `<think>` first, one opening and one closing tag, and something after it
   * (white space counts).
   */
  override formatReward(completion: Messages | string): number {
    return meanOverReplies(completion, (text) => (thinksInForm(text) ? 1 : 0));
  }
}

/** For models that may skip the reasoning: the text after the last `</think>`, or the whole reply, trimmed. */
export class MaybeThinkParser extends Parser {
  constructor(extract: Extract = (text) => text) {
    super((text) => extract(afterThinking(text) ?? text.trim()));
  }
}

function afterThinking(text: string): string | null {
  const close = text.lastIndexOf(CLOSE);
  return close === -1 ? null : text.slice(close + CLOSE.length).trim();
}

function thinksInForm(text: string): boolean {
  const [before, after, ...more] = text.split(CLOSE);
  if (before === undefined || after === undefined || more.length > 0 || after === "") return false;
  return text.trimStart().startsWith(OPEN) && text.split(OPEN).length === 2;
}
