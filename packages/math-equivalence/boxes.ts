/** Finds the marked answer of a reply: `\boxed{…}` and `<answer>…</answer>`. Each is read in one pass. */

/** A brace, an escaped brace, a command, or an opening box. */
const BRACES = /\\(?:f?boxed|fbox)\s{0,3}\{|\\[^a-zA-Z]|[{}]/g;

/** The content of the last `\boxed{…}` that closes and is not blank; null if there is none. */
export function lastBox(text: string): string | null {
  const open: { readonly isBox: boolean; readonly start: number }[] = [];
  let last: { start: number; content: string } | undefined;
  for (const { 0: mark, index } of text.matchAll(BRACES)) {
    if (mark === "}") {
      const { isBox, start } = open.pop() ?? { isBox: false, start: 0 };
      const isLater = isBox && start > (last?.start ?? -1) && !isBlank(text.slice(start, index));
      if (isLater) last = { start, content: text.slice(start, index).trim() };
    } else if (mark.endsWith("{") && mark !== "\\{") {
      open.push({ isBox: mark !== "{", start: index + mark.length });
    }
  }
  return last?.content ?? null;
}

const TAGS = /<(\/?)\s?(?:final[_ -]?)?answer(?:\s[^<>]{0,100})?\s?>/gi;

/** The content of the last `<answer>` that is not blank, also of one that never closes; null if there is none. */
export function lastTagged(text: string): string | null {
  let last: string | null = null;
  let start = -1;
  for (const { 0: tag, 1: closes, index } of text.matchAll(TAGS)) {
    if (closes === "") start = index + tag.length;
    else if (start !== -1) {
      const content = text.slice(start, index);
      if (!isBlank(content)) last = content.trim();
      start = -1;
    }
  }
  const rest = start === -1 || last !== null ? "" : text.slice(start);
  return isBlank(rest) ? last : rest.trim();
}

/** Spacing, dots and empty commands: a placeholder for an answer. */
const PLACEHOLDER = /\\(?:text[a-z]{0,6}|math[a-z]{0,6}|[lc]?dots|q?quad|[,;:! ])|[{}\s$~._?…]/g;

function isBlank(content: string): boolean {
  return content.replace(PLACEHOLDER, "") === "";
}
