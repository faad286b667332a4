/** Where the final answer stands in a text, by two common conventions. Each text is read once, by position. */

const BOX = "\\boxed{";

/**
 * What the last `\boxed{…}` holds, braces matched. Without one, or when it never closes: the whole text, or "" when
 * `strict`.
 */
export function extractBoxedAnswer(text: string, strict = false): string {
  const box = text.lastIndexOf(BOX);
  const start = box + BOX.length;
  const end = box === -1 ? -1 : closingBrace(text, start);
  if (end !== -1) return text.slice(start, end);
  return strict ? "" : text;
}

/** What stands between the first `####` and the next one (or the end), trimmed. Without one: the whole text. */
export function extractHashAnswer(text: string): string {
  return text.split("####", 2)[1]?.trim() ?? text;
}

function closingBrace(text: string, start: number): number {
  let depth = 1;
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === "{") depth += 1;
    if (text[at] === "}") depth -= 1;
    if (depth === 0) return at;
  }
  return -1;
}
