/** Replies that think first: `<think>…</think>`, then the answer. */
import type { Messages } from "../../contract/messages.ts";
import { type Extract, meanOverReplies, Parser } from "./parser.ts";

const OPEN = "<think>";
const CLOSE = "</think>";

/** The answer is what follows the last `</think>`, trimmed; "" when the thinking never closed. */
export class ThinkParser extends Parser {
  constructor(extract: Extract = (text) => text) {
    super((text) => extract(afterThinking(text) ?? ""));
  }

  /**
   * The share of replies that keep the form: `<think>` first, one opening and one closing tag, and something after it
   * (white space counts).
   */
  override formatReward(completion: Messages | string): number {
    return meanOverReplies(completion, (text) => (thinksInForm(text) ? 1 : 0));
  }
}

/** For models that may skip the thinking: the text after the last `</think>`, or the whole reply, trimmed. */
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
